"""Client quotas as Kafka has them."""
