"""Parts of pages: each draws what is computed, and turns a choice into a link."""
