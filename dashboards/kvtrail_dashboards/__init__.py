"""Pages for people whose P99 jumped: they ask the collector over HTTP and import none of its code."""
