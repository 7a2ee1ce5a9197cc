"""Replays: records of an archive are written to topics again, and committed offsets of groups follow them. Without Spark."""
