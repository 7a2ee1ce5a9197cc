"""Independent Kafka clients over a real socket: one text per scenario, three clients."""
