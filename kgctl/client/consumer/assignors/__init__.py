"""Partition assignors: how the leader of a group divides partitions among its members."""
