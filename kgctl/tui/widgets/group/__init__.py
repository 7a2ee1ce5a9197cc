"""The parts of the screen of one group, except the assignment."""
