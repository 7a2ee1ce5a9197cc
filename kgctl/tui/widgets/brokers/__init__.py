"""The parts of the screen of brokers."""
