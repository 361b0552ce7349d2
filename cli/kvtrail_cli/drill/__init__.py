"""`kvtrail drill`: what is broken on purpose, what counts as the right answer, and how often it is given."""
