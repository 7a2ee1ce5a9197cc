"""The parts of the screen of transactions."""
