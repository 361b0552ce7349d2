"""The agent: the recorder inside an engine's process, and the shipper beside it that carries its events away."""
