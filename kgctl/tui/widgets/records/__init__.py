"""The regions of the screen of records."""
