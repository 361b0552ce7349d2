"""The contract between the parts of kvtrail: events, their life cycle, identities, and the codecs that carry them.

Nothing here is imported for its side effects, and importing this package loads neither pyarrow nor numpy: an engine
pays only for the modules it names.
"""
