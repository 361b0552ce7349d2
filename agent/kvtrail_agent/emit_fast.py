"""The emit methods in C over the rest of a writer in Python. Importing it needs the extension."""

from kvtrail_agent import _ring
from kvtrail_agent.emit_methods import EmitMethods


class FastEmitMethods(_ring.Writer, EmitMethods):
    """Runs on the engine's threads. As `EmitMethods`, in a third of the time or less: the C type comes first and overrides."""
