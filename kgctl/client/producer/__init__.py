"""The producer: partitioner, accumulator and sender without I/O, and a blocking client that runs them."""
