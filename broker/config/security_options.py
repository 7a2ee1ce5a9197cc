"""The options of TLS: Kafka's names, types and defaults. Each can be set for one listener."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.config.option import password, text, words
from broker.light_dataclasses import dataclass

if TYPE_CHECKING:
    from broker.security.secret import Secret

STORE_TYPES = ("JKS", "PKCS12", "PEM")
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")


def _text(name: str, default: str | None, doc: str, **bounds: Any) -> Any:
    return text(name, default, doc, per_listener=True, **bounds)


def _password(name: str, doc: str) -> Any:
    return password(name, doc, per_listener=True)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class SecurityOptions:
    """One field per option, as in Options."""

    ssl_keystore_location: str | None = _text(
        "ssl.keystore.location",
        None,
        "The file with the broker's certificate chain and private key: PEM, PKCS12 or JKS.",
    )
    ssl_keystore_type: str = _text("ssl.keystore.type", "JKS", "The format of the key store.", choices=STORE_TYPES)
    ssl_keystore_password: Secret | None = _password("ssl.keystore.password", "The password of the key store.")
    ssl_key_password: Secret | None = _password("ssl.key.password", "The password of the private key.")
    ssl_keystore_certificate_chain: Secret | None = _password(
        "ssl.keystore.certificate.chain", "The broker's certificate chain as PEM, instead of a key store."
    )
    ssl_keystore_key: Secret | None = _password("ssl.keystore.key", "The broker's private key as PEM (PKCS #8).")
    ssl_truststore_location: str | None = _text(
        "ssl.truststore.location", None, "The file with the authorities that issue client certificates."
    )
    ssl_truststore_type: str = _text(
        "ssl.truststore.type", "JKS", "The format of the trust store.", choices=STORE_TYPES
    )
    ssl_truststore_password: Secret | None = _password("ssl.truststore.password", "The password of the trust store.")
    ssl_truststore_certificates: Secret | None = _password(
        "ssl.truststore.certificates",
        "The authorities that issue client certificates as PEM, instead of a trust store.",
    )
    ssl_client_auth: str = _text(
        "ssl.client.auth",
        "none",
        "Whether clients must present a certificate: required, requested or none.",
        choices=("required", "requested", "none"),
    )
    ssl_enabled_protocols: tuple[str, ...] = words(
        "ssl.enabled.protocols", TLS_VERSIONS, "The versions of TLS to speak.", choices=TLS_VERSIONS, per_listener=True
    )
    ssl_cipher_suites: tuple[str, ...] = words(
        "ssl.cipher.suites", (), "The cipher suites to allow, with their IANA names; all by default.", per_listener=True
    )
    ssl_principal_mapping_rules: str = _text(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "How the distinguished name of a client certificate becomes the name of a principal.",
    )
