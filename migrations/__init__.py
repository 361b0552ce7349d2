"""The steps that bring a store's tables from one version of kvtrail to the next; applied when the collector starts.

A step that is on main is history: it is never changed, only followed by another one.
"""
