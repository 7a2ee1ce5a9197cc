"""Membership of a consumer in its group: a state machine without I/O. `member.py` is its face."""
