"""What a context can set: Kafka's connection properties under Kafka's names, and kgctl's own settings in plain words."""

from __future__ import annotations

import re

from kgctl.client.net.errors import KgctlError

BOOTSTRAP, CLIENT_ID = "bootstrap.servers", "client.id"
TOKEN_COMMAND = "sasl.oauthbearer.token.command"
READ_ONLY, CONFIRM, COLOR, TIMEOUT = "read-only", "confirm", "color", "timeout"
# The names of Confluent's clients, with the prefix that its serializers use in the properties of others.
REGISTRY_URL, REGISTRY_USER_INFO = "schema.registry.url", "schema.registry.basic.auth.user.info"
REGISTRY_TOKEN = "schema.registry.bearer.auth.token"
REGISTRY_CLUSTER = "schema.registry.bearer.auth.logical.cluster"
REGISTRY_POOL = "schema.registry.bearer.auth.identity.pool.id"
REGISTRY_CA, REGISTRY_CERTIFICATE = "schema.registry.ssl.ca.location", "schema.registry.ssl.certificate.location"
REGISTRY_KEY, REGISTRY_KEY_PASSWORD = "schema.registry.ssl.key.location", "schema.registry.ssl.key.password"
REGISTRY = (
    REGISTRY_URL,
    REGISTRY_USER_INFO,
    REGISTRY_TOKEN,
    REGISTRY_CLUSTER,
    REGISTRY_POOL,
    REGISTRY_CA,
    REGISTRY_CERTIFICATE,
    REGISTRY_KEY,
    REGISTRY_KEY_PASSWORD,
)
OWN = (READ_ONLY, CONFIRM, COLOR, TIMEOUT)
COLORS = ("red", "green", "yellow", "blue", "magenta", "cyan", "white")
MAX_TIMEOUT_S = 86_400

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_SECURITY = ("security.protocol", "enable.ssl.certificate.verification")
_PATH = re.compile(r"(schema\.registry\.)?(ssl|sasl)\..*(\.location|\.file)")


class BadContext(KgctlError):
    """A context, or a choice of one, that cannot be used."""

    name = "BAD_OPTION"


def check_name(name: str) -> str:
    """The name of a context. Raises BadContext."""
    if not _NAME.fullmatch(name):
        raise BadContext(f"{name!r} is not a name of a context: use letters, digits, '.', '_' and '-', at most 64")
    return name


def is_connection(name: str) -> bool:
    """Whether this is about a connection; `is_known` says whether it exists."""
    return name in (BOOTSTRAP, CLIENT_ID, *_SECURITY) or name.startswith(("ssl.", "sasl."))


def is_known(name: str) -> bool:
    from kgctl.client.net.client_properties import KNOWN_NAMES

    return name in (*OWN, *REGISTRY, BOOTSTRAP, CLIENT_ID) or name in KNOWN_NAMES


def is_path(name: str) -> bool:
    """Whether the value names a file or a folder."""
    return _PATH.fullmatch(name) is not None


def unknown(name: str) -> str:
    """The sentence for a setting that does not exist."""
    import difflib

    from kgctl.client.net.client_properties import KNOWN_NAMES

    near = difflib.get_close_matches(name, (*OWN, *REGISTRY, BOOTSTRAP, CLIENT_ID, *KNOWN_NAMES), 1, 0.6)
    return f"unknown setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
