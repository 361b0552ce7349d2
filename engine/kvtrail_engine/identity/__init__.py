"""Whose a block is: namespaces and their mismatches, and the invalidations that no path can read across."""
