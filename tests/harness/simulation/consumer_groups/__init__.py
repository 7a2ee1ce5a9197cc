"""Worlds with members of the consumer protocol (KIP-848) beside those of the classic one."""
