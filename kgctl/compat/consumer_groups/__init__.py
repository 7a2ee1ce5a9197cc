"""kafka-consumer-groups."""
