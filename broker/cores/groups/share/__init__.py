"""Share groups (KIP-932): members share the partitions of topics, and the records of a partition."""
