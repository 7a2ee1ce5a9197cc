"""The finder: groups, topics, screens and actions by a part of their name."""
