"""How frames leave this host: one transport a file, one small protocol, one conformance suite."""

from kvtrail_agent.transports.base import Transport, open_transport

__all__ = ["Transport", "open_transport"]
