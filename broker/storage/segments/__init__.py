"""Segment files: append, index, producer state, compaction, recovery."""
