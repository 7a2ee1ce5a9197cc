"""The options of kafka-configs, and the entities that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from broker.light_dataclasses import dataclass
from kgctl.compat.options import HELP, Arguments, Option, UsageError, exclude, parse

TOPICS, CLIENTS, USERS, BROKERS, LOGGERS, IPS, METRICS, GROUPS = (
    "topics",
    "clients",
    "users",
    "brokers",
    "broker-loggers",
    "ips",
    "client-metrics",
    "groups",
)
_NAMED = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker-logger": LOGGERS,
    "ip": IPS,
    "client-metrics": METRICS,
    "group": GROUPS,
}
_NEW = ("group", "client-metrics")
_DEFAULTS = {"client-defaults": CLIENTS, "user-defaults": USERS, "broker-defaults": BROKERS, "ip-defaults": IPS}
_WITH_DEFAULTS = (USERS, CLIENTS, BROKERS, IPS)
# Splits at commas and equals signs outside of brackets.
_OUTSIDE = r"(?=[^\]]*(?:\[|$))"


@dataclass(frozen=True, slots=True)
class Entity:
    """What a command works on: kinds, and their names in the same order; an empty name is the default."""

    kinds: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def kind(self) -> str:
        return self.kinds[0]


def parsed(arguments: Sequence[str], dialect: str) -> tuple[Arguments, Entity]:
    """Raises UsageError."""
    is_old = dialect == "3.9"
    named = [option for option in _NAMED if not (is_old and option in _NEW)]
    valued = ("bootstrap-server", "bootstrap-controller", "command-config", "entity-type", "entity-name")
    changes = ("add-config", "add-config-file", "delete-config")
    options = [
        *map(Option, (*HELP, "alter", "describe", "all", "entity-default", *_DEFAULTS)),
        *(Option(name, "value") for name in (*valued, *changes, *named)),
    ]
    found = parse(options, arguments)
    if found.has(*HELP):
        return found, Entity((), ())
    if found.has("alter") == found.has("describe"):
        raise UsageError("Command must include exactly one action: --describe, --alter")
    exclude(found, "describe", ["alter", "add-config", "delete-config"])
    if found.has("bootstrap-controller"):
        raise UsageError("kgctl has no --bootstrap-controller; it works with --bootstrap-server")
    entity = _entity(found, named)
    _check_kinds(found, entity, is_old=is_old)
    _check_names(found, entity, is_old=is_old)
    return found, entity


def added(found: Arguments) -> dict[str, str]:
    """Raises UsageError."""
    text = found.value("add-config")
    parts = [] if text is None else _split(f",{_OUTSIDE}", text)
    pairs = [_split(rf"\s*=\s*{_OUTSIDE}", part) for part in parts]
    if any(len(pair) != 2 for pair in pairs):
        raise UsageError(
            'requirement failed: Invalid entity config: all configs to be added must be in the format "key=val" or  '
            '"key=[val1,val2]" to group values which contain commas.'
        )
    values = {name.strip(): re.sub(r"[\[\]]", "", value).strip() for name, value in pairs}
    values |= _from_file(found.value("add-config-file"))
    for name in values:
        if not re.fullmatch(r"[a-zA-Z0-9._-]*", name):
            raise UsageError(f"Invalid character found for config key: {name}")
    return values


def _split(pattern: str, text: str) -> list[str]:
    """As Java splits: without empty parts at the end, except that an empty text is one part."""
    parts = re.split(pattern, text)
    while text and parts and not parts[-1]:
        parts.pop()
    return parts


def deleted(found: Arguments) -> list[str]:
    """A text of commas alone is a name, as in the tool."""
    texts = found.values("delete-config")
    return [name.strip() for text in texts for name in [part for part in text.split(",") if part] or [text]]


def _from_file(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    from broker.config.option import ConfigError
    from broker.config.properties import read_properties

    try:
        return {name: text for _, name, text in read_properties(Path(path))}
    except ConfigError as error:
        raise UsageError(str(error)) from error


def _entity(found: Arguments, named: Sequence[str]) -> Entity:
    flags = [option for option in named if found.has(option)]
    defaults = [option for option in _DEFAULTS if found.has(option)]
    kinds = [*found.values("entity-type"), *(_NAMED[option] for option in flags), *map(_DEFAULTS.__getitem__, defaults)]
    given = iter(found.values("entity-name"))
    names = [
        next(given) if option == "entity-name" else ""
        for option in found.order
        if option in ("entity-name", "entity-default")
    ]
    names += [*(found.value(option) or "" for option in flags), *([""] * len(defaults))]
    return Entity(tuple(kinds), tuple(names))


def _check_kinds(found: Arguments, entity: Entity, *, is_old: bool) -> None:
    known = (TOPICS, CLIENTS, USERS, BROKERS, IPS, METRICS, *(() if is_old else (GROUPS,)), LOGGERS)
    repeated = [kind for at, kind in enumerate(entity.kinds) if kind in entity.kinds[:at]]
    if repeated:
        raise UsageError(f"Duplicate entity type(s) specified: {','.join(repeated)}")
    for kind in entity.kinds:
        if kind not in known:
            raise UsageError(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(known)} with a "
                "--bootstrap-server or --bootstrap-controller argument"
            )
    if not entity.kinds:
        raise UsageError("At least one entity type must be specified")
    if len(entity.kinds) > 1 and set(entity.kinds) != {USERS, CLIENTS}:
        raise UsageError("Only 'users' and 'clients' entity types may be specified together")
    if found.has("entity-name", "entity-type", "entity-default") and found.has(*_NAMED, *_DEFAULTS):
        raise UsageError("--entity-{type,name,default} should not be used in conjunction with specific entity flags")


def _check_names(found: Arguments, entity: Entity, *, is_old: bool) -> None:
    is_named = any(entity.names)
    kinds = ",".join(entity.kinds)
    with_defaults = any(kind in _WITH_DEFAULTS for kind in entity.kinds)
    if is_named and entity.kind in (BROKERS, LOGGERS):
        _check_each(entity, _is_number, "a valid integer broker id")
    if is_named and entity.kind == IPS:
        _check_each(entity, _is_host, "a valid IP or resolvable host")
    if found.has("describe"):
        if found.has("entity-default") and not with_defaults and not is_old:
            raise UsageError(f"--entity-default must not be specified with --describe of {kinds}")
        if entity.kind == LOGGERS and not is_named:
            raise UsageError(f"An entity name must be specified with --describe of {kinds}")
        return
    if with_defaults and not entity.names:
        raise UsageError(
            "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
        )
    if not with_defaults and not is_named:
        raise UsageError(f"An entity name must be specified with --alter of {kinds}")
    if found.has("add-config") and found.has("add-config-file"):
        raise UsageError("Only one of --add-config or --add-config-file must be specified")
    if not found.has("add-config", "add-config-file", "delete-config"):
        raise UsageError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )


def _check_each(entity: Entity, is_good: Callable[[str], bool], what: str) -> None:
    for name in entity.names:
        if name and not is_good(name):
            raise UsageError(f"The entity name for {entity.kind} must be {what}, but it is: {name}")


def _is_number(name: str) -> bool:
    return bool(re.fullmatch(r"[+-]?\d+", name, re.ASCII)) and -(2**31) <= int(name) < 2**31


def _is_host(name: str) -> bool:
    import socket

    try:
        socket.getaddrinfo(name, None)
    except (OSError, UnicodeError):
        return False
    return True
