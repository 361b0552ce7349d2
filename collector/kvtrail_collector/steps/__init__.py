"""What happens to a batch between its source and its acknowledgement: decode, store, or quarantine; one step a file."""
