"""The producer: partitioner, accumulator and sender without I/O, and the blocking client that runs them."""
