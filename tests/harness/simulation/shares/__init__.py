"""Worlds with share groups (KIP-932)."""
