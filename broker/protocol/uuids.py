"""How Kafka writes ids."""

from __future__ import annotations


def spelled(uuid: bytes) -> str:
    """Base64 without padding, in the alphabet for URLs."""
    from binascii import b2a_base64

    return b2a_base64(uuid, newline=False).decode().rstrip("=").replace("+", "-").replace("/", "_")
