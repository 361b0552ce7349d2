"""What a drill is: a fault that can be begun and ended while an engine runs."""

from typing import Protocol

from kvtrail_schema.enums import Tier

from kvtrail_engine.engine import Engine


class Drill(Protocol):
    """**Protocol:** one fault. Its methods are called on the drill's own thread and return soon."""

    @property
    def name(self) -> str:
        """The name that stands in `fault_injected`."""
        ...

    @property
    def tier(self) -> Tier | None:
        """The tier that it strikes, where it strikes one."""
        ...

    @property
    def value(self) -> float:
        """How hard it strikes, in its own unit."""
        ...

    def prepare(self, engine: Engine) -> None:
        """Whatever must lie ready before; not part of the fault."""
        ...

    def begin(self, engine: Engine) -> None:
        """Strike."""
        ...

    def tick(self, engine: Engine, elapsed_s: float) -> None:
        """Called about ten times a second while the fault lasts."""
        ...

    def end(self, engine: Engine) -> None:
        """Stop striking; what is on its way may still end."""
        ...
