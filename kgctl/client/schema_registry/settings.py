"""How to reach a schema registry."""

from __future__ import annotations

from urllib.parse import urlsplit

from broker.light_dataclasses import dataclass
from broker.security.secret import Secret
from kgctl.client.schema_registry.errors import BadRegistry


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """`url` may list several with commas. `user_info` is `user:password`. Files are PEM; `timeout` is in seconds."""

    url: str
    user_info: Secret | None = None
    ca_location: str | None = None
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: Secret | None = None
    timeout: float = 30.0

    def __post_init__(self) -> None:
        for one in self.url.split(","):
            parts = urlsplit(one.strip())
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise BadRegistry(f"{one.strip()!r} is not the URL of a schema registry: write http://HOST:PORT")
            if parts.username is not None or parts.password is not None:
                raise BadRegistry(
                    "the URL of the schema registry has a user: set schema.registry.basic.auth.user.info in a context or"
                    " in a file for --command-config, to keep the password private"
                )
