"""What there is to ask about, in the shapes that the API publishes; loads no database."""

import msgspec


class EngineRow(msgspec.Struct, frozen=True):
    """One engine: its first arrival, the newest moment that is known of it, what makes its clock wall time, its device."""

    engine: str
    ranks: list[int]
    first_ns: int | None
    last_ns: int | None
    wall_offset_ns: int
    requests: int
    heard_wall_ns: int
    device: str | None = None


class Named(msgspec.Struct, frozen=True):
    """A hashed value, and the name that the operator's map gives it; the value itself where it gives none."""

    id: str
    name: str


class Engines(msgspec.Struct, frozen=True):
    """What pages offer for choice; at most a thousand of each."""

    engines: list[EngineRow]
    tenants: list[Named]
    models: list[Named]
    device: str | None = None
    schema: int = 1
