"""Turns a target into the settings of a connection. This is where secrets are resolved, and no earlier."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from broker.light_dataclasses import replace
from broker.security.secret import Secret
from kgctl.client.net.bootstrap import BadAddress, parse
from kgctl.client.net.connector import DEFAULT_CLIENT_ID, ConnectionSettings
from kgctl.client.net.security import PLAINTEXT, BadSecurity, Security
from kgctl.contexts.names import BOOTSTRAP, CLIENT_ID, BadContext, is_connection, is_path

if TYPE_CHECKING:
    from kgctl.contexts.target import Target

DEFAULT_TIMEOUT_S = 30.0


def connection_to(
    target: Target,
    *,
    client_id: str = DEFAULT_CLIENT_ID,
    timeout: float | None = None,
    environ: Mapping[str, str] = os.environ,
) -> ConnectionSettings:
    """How to connect to the target. The context's client id and, without `timeout`, its time limit count. Raises BadContext."""
    properties = resolved(target, environ)
    sources = {name: sourced.source for name, sourced in target.values.items()}
    found = connection_with(
        properties, client_id=client_id, timeout=timeout or target.timeout or DEFAULT_TIMEOUT_S, sources=sources
    )
    return replace(found, read_only=True) if target.is_read_only else found


def connection_with(
    properties: Mapping[str, str | Secret],
    *,
    client_id: str = DEFAULT_CLIENT_ID,
    timeout: float = DEFAULT_TIMEOUT_S,
    sources: Mapping[str, str] | None = None,
) -> ConnectionSettings:
    """A connection with these properties, in Kafka's names. `sources` says in errors where a property stands."""
    sources = sources or {}
    try:
        bootstrap = parse(_plain(properties.get(BOOTSTRAP, "")))
    except BadAddress as error:
        raise BadAddress(f"{_place(BOOTSTRAP, sources)}{error}") from None
    own_id = _plain(properties.get(CLIENT_ID, ""))
    return ConnectionSettings(bootstrap, own_id or client_id, timeout, _security(properties, sources))


def _security(properties: Mapping[str, str | Secret], sources: Mapping[str, str]) -> Security:
    given = {name: value for name, value in properties.items() if name not in (BOOTSTRAP, CLIENT_ID)}
    if not given:
        return PLAINTEXT
    from kgctl.client.net.client_properties import security_from

    try:
        return security_from(given)
    except BadSecurity as error:
        # The message begins with the property.
        raise BadContext(f"{_place(str(error).partition(':')[0], sources)}{error}") from None


def connection_at(
    bootstrap: str, *, client_id: str = DEFAULT_CLIENT_ID, timeout: float = DEFAULT_TIMEOUT_S
) -> ConnectionSettings:
    """A plaintext connection to HOST:PORT[,...], whatever contexts there are."""
    return ConnectionSettings(parse(bootstrap), client_id, timeout)


def resolved(
    target: Target, environ: Mapping[str, str] = os.environ, *, wanted: Callable[[str], bool] = is_connection
) -> dict[str, str | Secret]:
    """The wanted properties with their secrets, and with paths that are valid anywhere. Raises BadContext."""
    if target.unsafe is not None:
        raise BadContext(target.unsafe)
    found: dict[str, str | Secret] = {}
    for name, sourced in target.values.items():
        value = sourced.value
        if not wanted(name):
            continue
        if not isinstance(value, str | Secret):
            try:
                value = value.resolve(name, environ)
            except BadContext as error:
                raise BadContext(f"{sourced.source}: {error}") from None
        elif isinstance(value, str) and value and is_path(name) and target.folder is not None:
            from kgctl.contexts.values import located

            value = located(value, target.folder)
        found[name] = value
    return found


def _place(name: str, sources: Mapping[str, str]) -> str:
    """Where a property stands; for one that is missing, where the address stands."""
    place = sources.get(name) or sources.get(BOOTSTRAP)
    return f"{place}: " if place else ""


def _plain(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value
