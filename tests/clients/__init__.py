"""Scenarios with three independent Kafka clients over real sockets."""
