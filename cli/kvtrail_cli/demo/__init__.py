"""The demo: what it runs, what it answers, how it shows it."""
