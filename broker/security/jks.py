"""Reads JKS, the key store format of Java before PKCS12. Pure.

The format has no specification; see sun.security.provider.JavaKeyStore (the file) and KeyProtector (private keys). Both
are weak by today's standards: a salted SHA-1 for integrity, and a key stream of SHA-1 digests for keys.
"""

from __future__ import annotations

import hashlib
import hmac

from broker.light_dataclasses import dataclass, field

MAGIC = b"\xfe\xed\xfe\xed"
_PRIVATE_KEY, _CERTIFICATE = 1, 2
_DIGEST_BYTES = 20
# DER of the object identifier 1.3.6.1.4.1.42.2.17.1.1, which names the protection of private keys.
_KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")


class BadJks(Exception):
    """The bytes are no intact JKS store, or the password does not open it."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    alias: str
    protected_key: bytes = field(repr=False)
    chain: tuple[bytes, ...]  # DER, the certificate of the key first


@dataclass(frozen=True, slots=True)
class Jks:
    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...]  # DER


def read(data: bytes, password: str | None) -> Jks:
    """The entries of a store. Without a password its integrity is not checked, as in Java. Raises BadJks."""
    if len(data) < 12 + _DIGEST_BYTES or data[:4] != MAGIC:
        raise BadJks("it is not a JKS store")
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None:
        expected = hashlib.sha1(_password_bytes(password) + b"Mighty Aphrodite" + body).digest()
        if not hmac.compare_digest(expected, digest):
            raise BadJks("the password does not fit, or the file is damaged")
    reader = _Reader(body[4:])
    version, count = reader.number(), reader.number()
    if version not in (1, 2):
        raise BadJks(f"version {version} of JKS is unknown")
    keys, trusted = [], []
    for _ in range(count):
        tag, alias = reader.number(), reader.text()
        reader.take(8)  # the time of creation
        if tag == _PRIVATE_KEY:
            protected = reader.block()
            chain = tuple(reader.certificate(version) for _ in range(reader.number()))
            keys.append(KeyEntry(alias, protected, chain))
        elif tag == _CERTIFICATE:
            trusted.append(reader.certificate(version))
        else:
            raise BadJks(f"entry {alias!r} is of an unknown kind")
    return Jks(tuple(keys), tuple(trusted))


def private_key(entry: KeyEntry, password: str) -> bytes:
    """The key of an entry as PKCS #8 in DER. Raises BadJks if the password does not open it."""
    protected = _octets(entry.protected_key)
    salt, check = protected[:_DIGEST_BYTES], protected[-_DIGEST_BYTES:]
    encrypted = protected[_DIGEST_BYTES:-_DIGEST_BYTES]
    secret = _password_bytes(password)
    stream, block = bytearray(), salt
    while len(stream) < len(encrypted):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    key = bytes(a ^ b for a, b in zip(encrypted, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise BadJks(f"the password does not open the private key {entry.alias!r}")
    return key


class _Reader:
    """The encoding of java.io.DataOutput."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise BadJks("the file is truncated")
        self._at += count
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def block(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        return self.take(int.from_bytes(self.take(2), "big")).decode(errors="replace")

    def certificate(self, version: int) -> bytes:
        kind = self.text() if version == 2 else "X.509"
        if kind != "X.509":
            raise BadJks(f"it has a certificate of the type {kind!r}; only X.509 is known")
        return self.block()


def _octets(protected: bytes) -> bytes:
    """The encrypted data of an EncryptedPrivateKeyInfo: SEQUENCE { SEQUENCE { identifier, NULL }, OCTET STRING }."""
    outer = _element(protected, 0x30)[0]
    algorithm, rest = _element(outer, 0x30)
    data = _element(rest, 0x04)[0]
    if not algorithm.startswith(_KEY_PROTECTOR) or len(data) < 2 * _DIGEST_BYTES:
        raise BadJks("a private key is protected in a way that JKS does not have")
    return data


def _element(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the first DER element, and what follows it."""
    if len(data) < 2 or data[0] != tag:
        raise BadJks("a private key is damaged")
    length, at = data[1], 2
    if length & 0x80:
        at += length & 0x7F
        length = int.from_bytes(data[2:at], "big")
    if len(data) < at + length:
        raise BadJks("a private key is damaged")
    return data[at : at + length], data[at + length :]


def _password_bytes(password: str) -> bytes:
    return password.encode("utf-16-be")
