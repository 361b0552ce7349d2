"""The collector: takes events in, keeps them once, and says what made requests slow.

Start with `app.py` for what it answers, `store/` for how it keeps, `ledger.py` and `attribution.py` for how it explains.
"""
