"""Broken invariants found as events come in: incrementally, in bounded memory, on a thread beside the writer.

What a checker here finds is what the rule of the same code finds in the same events later (`detectors/`), or nothing: where
something was forgotten, left out, or came late, it is unknown, and the stored form answers.
"""
