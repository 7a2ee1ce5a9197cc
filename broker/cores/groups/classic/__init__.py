"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup. See `join` and `rebalance` for its rule."""
