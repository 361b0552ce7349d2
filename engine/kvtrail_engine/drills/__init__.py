"""Faults on purpose, each from one given moment to another; `fault_injected` and `fault_cleared` mark them."""
