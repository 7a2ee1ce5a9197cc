"""Share groups (KIP-932): which records of a partition are acquired, by whom, and what became of them. Pure."""
