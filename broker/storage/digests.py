"""BLAKE2b without the rest of hashlib, whose import loads OpenSSL and costs as much as opening the store."""

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b"]
