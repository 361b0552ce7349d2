"""A real KV-offload engine in PyTorch: paged KV, tiers gpu, host and nvme, and an open-loop load on top.

Importing this package loads no torch; `kvtrail_engine.engine` does.
"""
