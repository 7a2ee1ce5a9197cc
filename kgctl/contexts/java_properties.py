"""A Java client.properties as Kafka's tools take it with --command-config."""

from __future__ import annotations

from pathlib import Path

from broker.secret_names import is_secret
from broker.security.secret import Secret
from kgctl.contexts.names import BOOTSTRAP, CLIENT_ID, REGISTRY, REGISTRY_USER_INFO, BadContext, is_connection
from kgctl.contexts.values import Value

_NEAR = 0.85
_SHORT_NAMES = {"basic.auth.user.info": REGISTRY_USER_INFO}


def read_java_file(path: Path) -> tuple[dict[str, Value], dict[str, int]]:
    """The properties of the connection and the schema registry, and their lines; others are left out, see `ignored_in`.

    Raises BadContext.
    """
    pairs = _pairs(path)
    if any(name == "config.providers" and text.strip() for _, name, text in pairs):
        raise BadContext(
            f"{path}: config.providers is not supported; `kgctl context add --help` shows how to keep secrets"
        )
    found: dict[str, Value] = {}
    lines: dict[str, int] = {}
    for number, given, text in pairs:
        name = _SHORT_NAMES.get(given, given)
        if _is_taken(name):
            found[name] = Secret(text) if is_secret(name) else text
            lines[name] = number
    return found, lines


def _is_taken(name: str) -> bool:
    return is_connection(name) or name in REGISTRY


def ignored_in(path: Path) -> list[str]:
    """The names in the file that say nothing about the connection, such as acks."""
    return list(dict.fromkeys(name for _, name, _ in _pairs(path) if not _is_taken(_SHORT_NAMES.get(name, name))))


def misspelt_in(path: Path) -> list[str]:
    """Sentences about names that are left out, but probably mean a property of the connection."""
    left_out = [(number, name) for number, name, _ in _pairs(path) if not _is_taken(_SHORT_NAMES.get(name, name))]
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


def _pairs(path: Path) -> list[tuple[int, str, str]]:
    from broker.config.option import ConfigError
    from broker.config.properties import read_properties

    try:
        return read_properties(path)
    except ConfigError as error:
        raise BadContext(str(error).replace("cannot read config file", "cannot read", 1)) from None
