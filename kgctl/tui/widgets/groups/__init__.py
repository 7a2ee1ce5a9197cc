"""The parts of the screen of all groups."""
