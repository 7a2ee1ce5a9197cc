"""Consumer groups (KIP-848): members only send heartbeats, and the coordinator assigns the partitions. See `heartbeat`."""
