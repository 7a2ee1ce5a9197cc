"""The TLS context of a listener from Kafka's `ssl.*` options. Imports OpenSSL, hence it is imported where it is used."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from broker.light_named_tuples import NamedTuple
from broker.security import keystores, pem
from broker.security.cipher_suites import UnknownSuite, openssl_names

if TYPE_CHECKING:
    from broker.security.secret import Secret

PEM = "PEM"
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class BadTls(Exception):
    """TLS options that do not fit together or cannot be used: one line, which names an option or a file."""


class Store(NamedTuple):
    """The options of a key store or a trust store; `key` is for key stores only. `kind` is "keystore" or "truststore"."""

    kind: str
    type: str
    location: str | None
    password: Secret | None
    certificates: Secret | None
    key: Secret | None = None
    key_password: Secret | None = None


class Tls(NamedTuple):
    """The TLS options of one listener."""

    key_store: Store
    trust_store: Store
    client_auth: str
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]


class Served(NamedTuple):
    """The context of a listener, and the certificate (DER) that it shows to clients."""

    context: ssl.SSLContext
    certificate: bytes


def served(tls: Tls) -> Served:
    """Raises BadTls."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= (
        ssl.OP_NO_COMPRESSION
        # Renegotiation makes the broker compute at a client's will; Kafka refuses it, too.
        | ssl.OP_NO_RENEGOTIATION
        # A client that closes without a TLS alert, as most do, has closed. Requests have a length, so none can be cut unnoticed.
        | ssl.OP_IGNORE_UNEXPECTED_EOF
    )
    # A resumed session does not verify the client's certificate again. Without tickets TLS 1.3 resumes none. TLS 1.2 resumes one by
    # its id as long as OpenSSL remembers it, which Python cannot forbid: the listener checks the expiry of every certificate.
    context.num_tickets = 0
    if tls.client_auth != "none":
        context.options |= ssl.OP_NO_TICKET
    _set_versions_and_suites(context, tls)
    try:
        identity = _identity(tls.key_store)
        keystores.use_identity(context, identity, name=_source(tls.key_store))
        if tls.client_auth != "none":
            context.load_verify_locations(cadata=_trusted(tls.trust_store))
            # Java trusts every certificate of a trust store, also one that is not self-signed.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.verify_mode = CLIENT_AUTH[tls.client_auth]
    except keystores.BadStore as error:
        raise BadTls(str(error)) from None
    except ssl.SSLError as error:
        raise BadTls(f"{_source(tls.trust_store)}: {error.reason or error}") from None
    return Served(context, pem.first_certificate(identity.chain))


def _set_versions_and_suites(context: ssl.SSLContext, tls: Tls) -> None:
    versions = sorted(VERSIONS[name] for name in tls.protocols)
    if not versions:
        raise BadTls("ssl.enabled.protocols: name at least one of TLSv1.2, TLSv1.3")
    if tls.cipher_suites:
        try:
            old, new = openssl_names(tls.cipher_suites)
        except UnknownSuite as error:
            raise BadTls(f"ssl.cipher.suites: {error}") from None
        # Without a suite of a version, the version cannot be spoken.
        usable = {ssl.TLSVersion.TLSv1_2: bool(old), ssl.TLSVersion.TLSv1_3: bool(new)}
        versions = [version for version in versions if usable[version]]
        if not versions:
            raise BadTls("ssl.cipher.suites: no suite belongs to a version of ssl.enabled.protocols")
        if old:
            try:
                context.set_ciphers(":".join(old))
            except ssl.SSLError:
                raise BadTls(f"ssl.cipher.suites: OpenSSL supports none of {', '.join(tls.cipher_suites)}") from None
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _identity(store: Store) -> keystores.Identity:
    _check_pem(store)
    if store.key is not None or store.certificates is not None:
        if store.key is None or store.certificates is None:
            raise BadTls("ssl.keystore.certificate.chain and ssl.keystore.key belong together; only one of them is set")
        chain = store.certificates.reveal()
        return keystores.identity_from_pem(chain, store.key, store.key_password, name=_source(store))
    if store.location is None:
        raise BadTls(
            "the broker needs a certificate: set ssl.keystore.location, or ssl.keystore.certificate.chain and ssl.keystore.key"
        )
    return keystores.read_identity(store.location, store.password, store.key_password)


def _trusted(store: Store) -> str:
    _check_pem(store)
    if store.certificates is not None:
        return keystores.trusted_from_pem(store.certificates.reveal(), name=_source(store))
    if store.location is None:
        # Kafka would trust every authority that Java knows: anyone can get a certificate of those.
        raise BadTls(
            "ssl.client.auth needs the authorities of client certificates: set ssl.truststore.location or "
            "ssl.truststore.certificates"
        )
    return keystores.read_trusted(store.location, store.password)


def _check_pem(store: Store) -> None:
    """Refuse the combinations that Kafka refuses."""
    prefix = f"ssl.{store.kind}"
    inline = "certificate.chain" if store.kind == "keystore" else "certificates"
    is_inline = store.certificates is not None or store.key is not None
    if is_inline and store.type != PEM:
        raise BadTls(f"{prefix}.{inline} needs {prefix}.type=PEM; it is {store.type}")
    if is_inline and store.location is not None:
        raise BadTls(f"{prefix}.location and {prefix}.{inline} are both set; give one of them")
    if store.password is not None and store.type == PEM:
        raise BadTls(
            f"{prefix}.password does not belong to a PEM store; the password of a private key is ssl.key.password"
        )
    if store.kind == "keystore" and store.location is not None and store.type != PEM and store.password is None:
        raise BadTls(f"{prefix}.location needs {prefix}.password, or {prefix}.type=PEM for a PEM file")


def _source(store: Store) -> str:
    inline = "certificate.chain" if store.kind == "keystore" else "certificates"
    return store.location or f"ssl.{store.kind}.{inline}"
