"""From computed views to Altair charts: one chart a file, drawing alone."""
