"""Kafka Streams with exactly_once_v2: a word count whose instances and broker are killed."""
