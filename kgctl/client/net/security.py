"""How connections to a cluster are secured: values without behaviour. `client_properties` makes them, `tls` and `sasl` use them.

This module is a part of each start of kgctl, so it imports nothing of TLS. No repr shows a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from broker.light_dataclasses import dataclass, field
from broker.security.secret import Secret
from kgctl.client.net.errors import KgctlError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")


class BadSecurity(KgctlError):
    """A security property, or a file that it names, that cannot be used."""

    is_final = True
    name = "BAD_OPTION"


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom to trust: a store or PEM file, a directory of certificates, or PEM text. None of them: the system's store."""

    location: str | None = None
    password: Secret | None = None
    certificates: str | None = None


@dataclass(frozen=True, slots=True)
class OwnCertificate:
    """The client's certificate: a key store, two PEM files, or two PEM texts. `key_password` opens an encrypted key."""

    store: str | None = None
    store_password: Secret | None = None
    chain_file: str | None = None
    key_file: str | None = None
    chain: str | None = None
    key: Secret | None = None
    key_password: Secret | None = None


@dataclass(frozen=True, slots=True)
class Tls:
    trust: Trust = Trust()
    own: OwnCertificate | None = None
    verify_host_name: bool = True
    verify_certificate: bool = True
    versions: tuple[str, ...] = TLS_VERSIONS
    # OpenSSL's names, for TLS 1.2; empty: OpenSSL's choice.
    ciphers: tuple[str, ...] = ()


# --- where bearer tokens come from ---


@dataclass(frozen=True, slots=True)
class StaticToken:
    token: Secret


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file with a token, read for each authentication."""

    path: str


@dataclass(frozen=True, slots=True)
class TokenCommand:
    """A command that prints a token, or the JSON answer of a token endpoint. It runs without a shell."""

    command: str


@dataclass(frozen=True, slots=True)
class UnsecuredToken:
    """An unsigned token for development, with these claims; `lifetime` in seconds."""

    claims: Mapping[str, object]
    lifetime: float = 3600.0


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The client credentials grant of OAuth 2 (KIP-768). Times in seconds."""

    url: str
    client_id: str
    client_secret: Secret
    scope: str | None = None
    tls: Tls = field(default_factory=Tls)
    url_encode: bool = False
    connect_timeout: float | None = None
    read_timeout: float | None = None
    retry_backoff: float = 0.1
    retry_backoff_max: float = 10.0


@dataclass(frozen=True, slots=True)
class MskIam:
    """Tokens of Amazon MSK, signed with the AWS credentials of the environment, a profile or a role."""

    region: str | None = None
    profile: str | None = None
    role_arn: str | None = None
    role_session: str | None = None


TokenSource: TypeAlias = StaticToken | TokenFile | TokenCommand | UnsecuredToken | ClientCredentials | MskIam


@dataclass(frozen=True, slots=True)
class Sasl:
    """A mechanism with `username` and `password`, or with a source of tokens for OAUTHBEARER."""

    mechanism: str
    username: str = ""
    password: Secret | None = None
    token: TokenSource | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Security:
    """`tls` is set for SSL and SASL_SSL, `sasl` for SASL_PLAINTEXT and SASL_SSL."""

    protocol: str = "PLAINTEXT"
    tls: Tls | None = None
    sasl: Sasl | None = None

    @property
    def warnings(self) -> list[str]:
        """What is weaker than it should be, a sentence each, for the user."""
        found = []
        if self.tls is not None and not self.tls.verify_certificate:
            found.append(
                "certificates are not verified (enable.ssl.certificate.verification=false): anybody can pose as the cluster"
            )
        elif self.tls is not None and not self.tls.verify_host_name:
            found.append(
                "host names are not verified (ssl.endpoint.identification.algorithm is empty): "
                "any host with a certificate of a trusted CA can pose as the cluster"
            )
        token = self.sasl.token if self.sasl else None
        if isinstance(token, ClientCredentials) and token.url.lower().startswith("http:"):
            found.append("sasl.oauthbearer.token.endpoint.url is not https: the client secret travels in the clear")
        return found


PLAINTEXT = Security()
