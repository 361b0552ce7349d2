"""Alerts: rules over measures that settle in seconds, and the actions that follow from them (docs/alerts.md)."""
