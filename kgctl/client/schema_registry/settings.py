"""How to reach a schema registry."""

from __future__ import annotations

from urllib.parse import urlsplit

from broker.light_dataclasses import dataclass
from broker.security.secret import Secret
from kgctl.client.schema_registry.errors import BadRegistry


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """`url` may list several with commas. `user_info` is `user:password`. Files are PEM; `timeout` is in seconds.

    A bearer token and a user exclude each other. With a token, Confluent Cloud wants the ids of the registry and, depending on the
    provider of identities, of a pool.
    """

    url: str
    user_info: Secret | None = None
    bearer_token: Secret | None = None
    logical_cluster: str | None = None
    identity_pool: str | None = None
    ca_location: str | None = None
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: Secret | None = None
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if self.user_info is not None and self.bearer_token is not None:
            raise BadRegistry(
                "schema.registry.basic.auth.user.info and schema.registry.bearer.auth.token exclude each other: set one"
            )
        for one in self.url.split(","):
            parts = urlsplit(one.strip())
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise BadRegistry(f"{one.strip()!r} is not the URL of a schema registry: write http://HOST:PORT")
            if parts.username is not None or parts.password is not None:
                raise BadRegistry(
                    "the URL of the schema registry has a user: set schema.registry.basic.auth.user.info in a context or"
                    " in a file for --command-config, to keep the password private"
                )
