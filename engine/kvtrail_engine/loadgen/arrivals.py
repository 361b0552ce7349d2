"""A request with the moment at which it comes, whatever the engine is doing then."""

from dataclasses import dataclass

from kvtrail_engine.request import RequestSpec


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """`at_ns` counts from the start of the load."""

    at_ns: int
    spec: RequestSpec
