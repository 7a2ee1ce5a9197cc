"""BLAKE2b without hashlib: importing hashlib loads OpenSSL, which takes as long as opening the store."""

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b"]
