"""The assignment of a group: members x partitions."""
