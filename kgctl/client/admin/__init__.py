"""Administration: groups, offsets, topics, history."""
