"""What a drill is: a fault that can be begun and ended while an engine runs."""

from abc import ABC, abstractmethod

from kvtrail_schema.enums import Tier

from kvtrail_engine.engine import Engine


class Drill(ABC):
    """One fault. It injects a mechanism, never an event. Methods are called on the drill's own thread and return soon."""

    name: str
    """The name that stands in `fault_injected`."""
    tier: Tier | None = None
    """The tier that it strikes, where it strikes one."""

    @property
    @abstractmethod
    def value(self) -> float:
        """How hard it strikes, in its own unit."""

    def prepare(self, engine: Engine) -> None:  # noqa: B027 - most faults need nothing to lie ready
        """Whatever must lie ready before; not part of the fault. May block."""

    @abstractmethod
    def begin(self, engine: Engine) -> None:
        """Strike."""

    def tick(self, engine: Engine, elapsed_s: float) -> None:  # noqa: B027 - most faults go on by themselves
        """Called about twenty times a second while the fault lasts."""

    @abstractmethod
    def end(self, engine: Engine) -> None:
        """Stop striking; what is on its way may still end."""
