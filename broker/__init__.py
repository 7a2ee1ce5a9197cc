"""A local, single-node broker that speaks the Kafka wire protocol."""
