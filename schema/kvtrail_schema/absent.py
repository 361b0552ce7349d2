"""The values that say "absent" to an emitter, one a width.

They are typed `Any` so that they can stand as defaults of typed parameters: an emit call pays neither for `None` nor
for a presence map. Pass them on where a value may be missing: `ns=ns if ns is not None else NO_U64`.
"""

import math
from typing import Any, Final

NO_U8: Final[Any] = 2**8 - 1
NO_U16: Final[Any] = 2**16 - 1
NO_U32: Final[Any] = 2**32 - 1
NO_U64: Final[Any] = 2**64 - 1
NO_I16: Final[Any] = -(2**15)
NO_I64: Final[Any] = -(2**63)
NO_F64: Final[Any] = math.nan
NO_BOOL: Final[Any] = 2**8 - 1
NO_TEXT: Final[Any] = ""
NO_TRACE: Final[Any] = ""
