"""Reads key stores and trust stores as Java users have them: PEM, PKCS12 and JKS. A store's content decides its format."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass
from broker.security import jks, pem
from broker.security.secret import Secret

if TYPE_CHECKING:
    import ssl

TYPES = ("PEM", "PKCS12", "JKS")


class BadStore(Exception):
    """One sentence that names the store and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate chain and its private key, both PEM. `password` opens the key if it is encrypted."""

    chain: str
    key: Secret
    password: Secret | None = None


def identity_from_pem(chain: str, key: Secret, password: Secret | None = None, *, name: str) -> Identity:
    """An identity from PEM texts; `name` says in errors where they are from. Raises BadStore."""
    try:
        return Identity(pem.certificates(chain), Secret(pem.private_key(key.reveal())), password)
    except pem.BadPem as error:
        raise BadStore(f"{name}: {error}") from None


def read_identity(path: str, store_password: Secret | None, key_password: Secret | None = None) -> Identity:
    """The first key of a store with its certificates. Raises BadStore."""
    data = read_file(path)
    if data.startswith(jks.MAGIC):
        return _identity_from_jks(path, data, store_password, key_password)
    if _is_der(data):
        return _identity_from_pkcs12(path, data, store_password)
    text = Secret(data.decode(errors="replace"))
    return identity_from_pem(text.reveal(), text, key_password, name=path)


def read_trusted(path: str, password: Secret | None = None) -> str:
    """The certificates of a trust store, as PEM. Raises BadStore."""
    data = read_file(path)
    try:
        if data.startswith(jks.MAGIC):
            store = jks.read(data, _text(password))
            ders = [*store.trusted, *(entry.chain[0] for entry in store.keys if entry.chain)]
            found = "".join(pem.from_der("CERTIFICATE", der) for der in ders)
        elif _is_der(data):
            found = _trusted_from_pkcs12(path, data, password)
        else:
            return pem.certificates(data.decode(errors="replace"))
    except (jks.BadJks, pem.BadPem) as error:
        raise BadStore(f"{path}: {error}") from None
    if not found:
        raise BadStore(f"{path}: it has no trusted certificate")
    return found


def trusted_from_pem(text: str, *, name: str) -> str:
    """The certificates of a PEM text. Raises BadStore."""
    try:
        return pem.certificates(text)
    except pem.BadPem as error:
        raise BadStore(f"{name}: {error}") from None


def use_identity(context: ssl.SSLContext, identity: Identity, *, name: str) -> None:
    """Let a context present an identity. Raises BadStore if the key does not open, or does not fit the certificate."""
    import ssl

    password = identity.password.reveal() if identity.password else ""
    try:
        with _passing_file(identity.key.reveal() + identity.chain) as path:
            # A callback, also without a password: OpenSSL would ask for one on the terminal.
            context.load_cert_chain(path, password=lambda: password)
    except (ssl.SSLError, ValueError) as error:
        raise BadStore(f"{name}: {_why_unusable(identity, error)}") from None


def read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise BadStore(f"{path}: {error.strerror or error}") from None


def _why_unusable(identity: Identity, error: Exception) -> str:
    if "KEY_VALUES_MISMATCH" in str(error):
        return "the private key does not belong to the certificate"
    if pem.is_encrypted(identity.key.reveal()):
        if not identity.password:
            return "the private key is encrypted; its password is missing (ssl.key.password)"
        return "the password does not open the private key (ssl.key.password)"
    return f"the certificate or its key cannot be used: {getattr(error, 'reason', None) or error}"


def _identity_from_jks(path: str, data: bytes, password: Secret | None, key_password: Secret | None) -> Identity:
    opening = key_password or password
    if opening is None:
        raise BadStore(f"{path}: the password of the key store is missing (ssl.keystore.password)")
    try:
        store = jks.read(data, _text(password))
        if not store.keys:
            raise BadStore(f"{path}: it has no private key")
        entry = store.keys[0]
        key = pem.from_der("PRIVATE KEY", jks.private_key(entry, opening.reveal()))
    except jks.BadJks as error:
        raise BadStore(f"{path}: {error}") from None
    return Identity("".join(pem.from_der("CERTIFICATE", der) for der in entry.chain), Secret(key))


def _identity_from_pkcs12(path: str, data: bytes, password: Secret | None) -> Identity:
    serialization, store = _open_pkcs12(path, data, password)
    if store.key is None or store.cert is None:
        raise BadStore(f"{path}: it has no private key with a certificate")
    encoding = serialization.Encoding.PEM
    key = store.key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain = [store.cert, *store.additional_certs]
    return Identity("".join(each.certificate.public_bytes(encoding).decode() for each in chain), Secret(key.decode()))


def _trusted_from_pkcs12(path: str, data: bytes, password: Secret | None) -> str:
    serialization, store = _open_pkcs12(path, data, password)
    found = [*([store.cert] if store.cert else []), *store.additional_certs]
    return "".join(each.certificate.public_bytes(serialization.Encoding.PEM).decode() for each in found)


def _open_pkcs12(path: str, data: bytes, password: Secret | None):  # type: ignore[no-untyped-def]
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise BadStore(
            f"{path}: reading PKCS12 needs the package cryptography: pip install 'kgctl[security]'; "
            f"or convert the store: openssl pkcs12 -in {path} -out store.pem"
        ) from None
    try:
        return serialization, pkcs12.load_pkcs12(data, password.reveal().encode() if password else None)
    except ValueError as error:
        if "password" in str(error).lower():
            raise BadStore(f"{path}: the password does not open the store") from None
        raise BadStore(f"{path}: it is neither PEM nor an intact PKCS12 or JKS store") from None


def _is_der(data: bytes) -> bool:
    """Whether the bytes begin with a long DER sequence, as PKCS12 does."""
    return data[:1] == b"\x30" and data[1:2] >= b"\x80"


def _text(secret: Secret | None) -> str | None:
    return secret.reveal() if secret is not None else None


@contextlib.contextmanager
def _passing_file(text: str) -> Iterator[str]:
    """A path for a library that takes only paths. The text stays in memory where the system can do that."""
    if hasattr(os, "memfd_create"):
        fileno = os.memfd_create("identity", os.MFD_CLOEXEC)
        try:
            with open(fileno, "w", closefd=False) as file:
                file.write(text)
            yield f"/proc/self/fd/{fileno}"
        finally:
            os.close(fileno)
        return
    with tempfile.NamedTemporaryFile("w", prefix="kgctl-", suffix=".pem") as file:
        file.write(text)
        file.flush()
        yield file.name
