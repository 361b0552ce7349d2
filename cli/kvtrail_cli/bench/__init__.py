"""Benchmarks: what they load, what they measure, and the figures that they print. Each has its verb in `commands/`."""
