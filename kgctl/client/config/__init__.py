"""The options of clients: Kafka's names, types, bounds and defaults, declared once; and how they are read."""
