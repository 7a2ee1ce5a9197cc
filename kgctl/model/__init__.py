"""Frozen rows: what clients return, and commands, the dashboard and pipelines show."""
