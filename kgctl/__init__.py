"""The admin toolkit: command line and wire client for any Kafka cluster."""
