"""What other engines write, as our events: one decoder a format, pure over its input and a state that is passed in.

Read `decoded.py` first: it is what every decoder gives. Nothing here opens a socket or a file.
"""
