"""The regions of the screen of events."""
