"""The tiers' own machinery: slot pools, bounded queues, worker threads, floors, and the segment files of nvme."""
