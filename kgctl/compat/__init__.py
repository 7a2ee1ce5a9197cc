"""Kafka's command-line tools: their options in, their text out, byte for byte on stdout."""
