"""Offline rescue: read what is left of a data directory, and build a new one from it. No start imports this."""
