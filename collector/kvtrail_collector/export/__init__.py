"""What is stored, in the forms of other tools: Perfetto's timelines, Parquet's tables."""
