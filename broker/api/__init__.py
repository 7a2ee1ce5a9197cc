"""Requests over read-only views and the coordinator core, pure: what the runner and the simulation call."""
