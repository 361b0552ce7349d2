"""What can go wrong in the agent, and who hears of it.

```
AgentError
├── SettingsInvalid        the operator asked for something impossible; raised at start, before any event
├── RingError              the ring's file cannot be made, opened or understood
├── ShipperNotStarted      the shipper's process cannot be started
├── ForeignInvalid         a value in what another engine wrote cannot be read; caught and quarantined by its decoder
└── TransportError         heard by the shipper alone; never reaches the engine
    ├── TransportUnavailable   nobody there, or busy: send the same frame again later
    └── BatchRejected          this frame will never be taken: count it as dropped and go on
```
"""


class AgentError(Exception):
    """The root of everything that this package raises. No emit method ever raises."""


class SettingsInvalid(AgentError):
    """A setting that cannot be; the message names it, its value and what is possible."""


class RingError(AgentError):
    """The file of a ring cannot be made, opened or understood."""


class ShipperNotStarted(AgentError):
    """The system refused the shipper's process; heard at start alone, later it is tried again."""


class ForeignInvalid(AgentError):
    """A value in what another engine wrote cannot be read. Never leaves a decoder: the thing around it is quarantined."""


class TransportError(AgentError):
    """A frame was not acknowledged."""


class TransportUnavailable(TransportError):
    """The other side is not there, or busy; the same frame may be sent again."""


class BatchRejected(TransportError):
    """The other side will never take this frame."""
