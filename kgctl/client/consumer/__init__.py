"""The consumer: subscription, fetch positions and group membership without I/O, and a blocking client that runs them."""
