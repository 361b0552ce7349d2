"""How an engine is asked to degrade: a small endpoint, off by default, that believes signed orders alone (docs/alerts.md)."""

from kvtrail_agent.degrade.receiver import DegradeReceiver
from kvtrail_agent.degrade.settings import DegradeSettings

__all__ = ["DegradeReceiver", "DegradeSettings"]
