"""KV events that vLLM and SGLang publish over ZeroMQ, followed from outside the engine and recorded as events of ours.

`follow.py` is the idea: which batch comes next, what is missing, and when an engine began anew. `relay.py` runs it.
"""
