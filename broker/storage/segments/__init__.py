"""Topics as segment files: append, index, producer state, compaction, retention, recovery."""
