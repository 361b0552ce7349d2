"""What is asked of the tables: SQL to rows or Arrow, one subject a file. All run on worker threads, each on its own cursor."""
