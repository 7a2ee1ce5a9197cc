"""The line that shows where a replay stands."""
