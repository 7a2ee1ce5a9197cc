"""A Java client.properties as Kafka's tools take it with --command-config."""

from __future__ import annotations

from pathlib import Path

from broker.light_named_tuples import NamedTuple
from broker.secret_names import is_secret
from broker.security.secret import Secret
from kgctl.contexts.names import (
    BOOTSTRAP,
    CLIENT_ID,
    REGISTRY,
    REGISTRY_CA,
    REGISTRY_CLUSTER,
    REGISTRY_POOL,
    REGISTRY_TOKEN,
    REGISTRY_USER_INFO,
    BadContext,
    is_connection,
)
from kgctl.contexts.values import Value

_NEAR = 0.85
# What Java's clients of a schema registry call kgctl's settings.
JAVA_REGISTRY = {
    REGISTRY_USER_INFO: "basic.auth.user.info",
    REGISTRY_TOKEN: "bearer.auth.token",
    REGISTRY_CLUSTER: "bearer.auth.logical.cluster",
    REGISTRY_POOL: "bearer.auth.identity.pool.id",
    REGISTRY_CA: "schema.registry.ssl.truststore.location",
}
_OUR_NAMES = {theirs: ours for ours, theirs in JAVA_REGISTRY.items()}
# What Java needs beside them, and kgctl derives from them.
IMPLIED = {
    REGISTRY_USER_INFO: ("basic.auth.credentials.source", "USER_INFO"),
    REGISTRY_TOKEN: ("bearer.auth.credentials.source", "STATIC_TOKEN"),
    REGISTRY_CA: ("schema.registry.ssl.truststore.type", "PEM"),
}


def read_java_file(path: Path) -> tuple[dict[str, Value], dict[str, int]]:
    """The properties of the connection and the schema registry, and their lines; others are left out, see `ignored_in`.

    Raises BadContext.
    """
    rows = _rows(path)
    if any(one.given == "config.providers" and one.text.strip() for one in rows):
        raise BadContext(
            f"{path}: config.providers is not supported; `kgctl context add --help` shows how to keep secrets"
        )
    found: dict[str, Value] = {}
    lines: dict[str, int] = {}
    for one in rows:
        if _is_taken(one.name):
            found[one.name] = Secret(one.text) if is_secret(one.name) else one.text
            lines[one.name] = one.line
    return found, lines


def _is_taken(name: str) -> bool:
    return is_connection(name) or name in REGISTRY


def ignored_in(path: Path) -> list[str]:
    """The names in the file that say nothing about the connection, such as acks."""
    left_out = (one for one in _rows(path) if not _is_taken(one.name))
    return list(dict.fromkeys(one.given for one in left_out if (one.given, one.text) not in IMPLIED.values()))


def misspelt_in(path: Path) -> list[str]:
    """Sentences about names that are left out, but probably mean a property of the connection."""
    left_out = [(one.line, one.given) for one in _rows(path) if not _is_taken(one.name)]
    if not left_out:
        return []
    from difflib import get_close_matches

    # What begins with ssl. or sasl. and is unknown is an error.
    names = (BOOTSTRAP, CLIENT_ID, "security.protocol")
    near = ((number, name, get_close_matches(name, names, 1, _NEAR)) for number, name in left_out)
    return [
        f"{path}, line {number}: unknown property {name!r}; did you mean {one[0]!r}?"
        for number, name, one in near
        if one
    ]


class _Row(NamedTuple):
    """A property as it is `given`, and what kgctl calls it."""

    line: int
    given: str
    name: str
    text: str


def _rows(path: Path) -> list[_Row]:
    pairs = _pairs(path)
    names = dict(_OUR_NAMES)
    if IMPLIED[REGISTRY_CA] not in {(name, text) for _, name, text in pairs}:
        # A truststore of another type.
        del names[JAVA_REGISTRY[REGISTRY_CA]]
    return [_Row(line, given, names.get(given, given), text) for line, given, text in pairs]


def _pairs(path: Path) -> list[tuple[int, str, str]]:
    from broker.config.option import ConfigError
    from broker.config.properties import read_properties

    try:
        return read_properties(path)
    except ConfigError as error:
        raise BadContext(str(error).replace("cannot read config file", "cannot read", 1)) from None
