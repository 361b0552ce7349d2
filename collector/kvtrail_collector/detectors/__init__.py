"""One detector a file: what it fires on, and the look-alike that it must not be confused with."""
