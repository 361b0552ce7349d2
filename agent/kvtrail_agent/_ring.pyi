# Emit methods are not listed: a class that has this one in front takes their signatures from `EmitMethods`.
import mmap
from collections.abc import Callable

class Writer:
    _closed: bool
    def _bind(
        self,
        memory: mmap.mmap,
        text_bytes: int,
        now_ns: Callable[[], int] | None,
        no_time: int,
        trace_bytes: Callable[[str], bytes],
    ) -> None: ...
    def _draw(self) -> int: ...
    def _last_seq(self) -> int: ...
    def _cost_ns(self) -> int: ...
    def _begin_at(self, seq: int) -> None: ...
