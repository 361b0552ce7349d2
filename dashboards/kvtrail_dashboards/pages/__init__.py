"""Pages: each one file with one function that fetches, computes and draws in sections, top to bottom."""
