"""The parts of the screen of contexts."""
