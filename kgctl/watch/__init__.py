"""Derives health, rates and rebalances from successive snapshots of groups. Pure: snapshots and times are arguments."""
