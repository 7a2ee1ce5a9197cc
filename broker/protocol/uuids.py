"""How Kafka chooses and writes ids."""

from __future__ import annotations

from collections.abc import Callable


def chosen(random_bytes: Callable[[int], bytes]) -> bytes:
    """A random UUID (version 4, 16 bytes). As in Kafka, its text never begins with a dash, which in a command line would
    begin an option. Source: Kafka's `Uuid.randomUuid`."""
    while True:
        raw = bytearray(random_bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if raw[0] >> 2 != 62:  # the value of "-" in base64 for URLs
            return bytes(raw)


def spelled(uuid: bytes) -> str:
    """Base64 without padding, in the alphabet for URLs."""
    from binascii import b2a_base64

    return b2a_base64(uuid, newline=False).decode().rstrip("=").replace("+", "-").replace("/", "_")
