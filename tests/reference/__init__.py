"""Comparisons of our broker and commands with a real Kafka and its Java tools."""
