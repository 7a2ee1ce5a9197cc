"""Replays a recording: the state of the dashboard at any of its frames."""
