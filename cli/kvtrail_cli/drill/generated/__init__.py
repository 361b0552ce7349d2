"""Populations made from recorded runs: loads and service times as recorded, queues run anew, mechanisms broken."""
