"""The coordinator with its runner in a simulated world: a clock, a disk, a network and clients that fail on demand."""
