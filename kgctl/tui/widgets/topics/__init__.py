"""The regions of the screen of topics."""
