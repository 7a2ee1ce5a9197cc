"""The options of kafka-configs, and the entities that they name."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
_DEFAULTS = {"client-defaults": CLIENTS, "user-defaults": USERS, "broker-defaults": BROKERS, "ip-defaults": IPS}
_WITH_DEFAULTS = (USERS, CLIENTS, BROKERS, IPS)
# Splits at commas and equals signs outside of brackets.
_OUTSIDE = r"(?=[^\]]*(?:\[|$))"


@dataclass(frozen=True, slots=True)
class Entity:
    """The kind that a command works on; a name that is None stands for all, an empty one for the default."""

    kinds: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def kind(self) -> str:
        return self.kinds[0]

    @property
    def name(self) -> str | None:
        return self.names[0] if self.names else None


def parsed(arguments: Sequence[str]) -> tuple[Arguments, Entity]:
    """Raises UsageError."""
    valued = ("bootstrap-server", "bootstrap-controller", "command-config", "entity-type", "entity-name")
    changes = ("add-config", "add-config-file", "delete-config")
    options = [
        *map(Option, (*HELP, "alter", "describe", "all", "entity-default", *_DEFAULTS)),
        *(Option(name, "value") for name in (*valued, *changes, *_NAMED)),
    ]
    found = parse(options, arguments)
    if found.has("alter") == found.has("describe"):
        raise UsageError("Command must include exactly one action: --describe, --alter")
    exclude(found, "describe", ["alter", "add-config", "delete-config"])
    entity = _entity(found)
    _check_kinds(found, entity)
    _check_names(found, entity)
    return found, entity


def added(found: Arguments) -> dict[str, str]:
    """Raises UsageError."""
    text = found.value("add-config")
    pairs = [re.split(rf"\s*=\s*{_OUTSIDE}", part) for part in re.split(f",{_OUTSIDE}", text)] if text else []
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


def deleted(found: Arguments) -> list[str]:
    return [name.strip() for text in found.values("delete-config") for name in text.split(",") if name]


def _from_file(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except OSError as error:
        raise UsageError(f"{path} ({error.strerror})") from error
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _entity(found: Arguments) -> Entity:
    kinds = [*found.values("entity-type")]
    kinds += [kind for option, kind in (_NAMED | _DEFAULTS).items() if found.has(option)]
    names = [*found.values("entity-name"), *([""] if found.has("entity-default") else [])]
    names += [found.value(option) or "" for option in _NAMED if found.has(option)]
    names += [""] * sum(found.has(option) for option in _DEFAULTS)
    return Entity(tuple(kinds), tuple(names))


def _check_kinds(found: Arguments, entity: Entity) -> None:
    known = (TOPICS, CLIENTS, USERS, BROKERS, IPS, METRICS, GROUPS, LOGGERS)
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


def _check_names(found: Arguments, entity: Entity) -> None:
    is_named = any(entity.names)
    kinds = ",".join(entity.kinds)
    if is_named and entity.kind in (BROKERS, LOGGERS) and not all(re.fullmatch(r"-?\d+", n) for n in entity.names):
        about = f"must be a valid integer broker id, but it is: {entity.name}"
        raise UsageError(f"The entity name for {entity.kind} {about}")
    if found.has("describe"):
        if found.has("entity-default") and entity.kind not in _WITH_DEFAULTS:
            raise UsageError(f"--entity-default must not be specified with --describe of {kinds}")
        if entity.kind == LOGGERS and not is_named:
            raise UsageError(f"An entity name must be specified with --describe of {kinds}")
        return
    if entity.kind in _WITH_DEFAULTS and not entity.names:
        raise UsageError(
            "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
        )
    if entity.kind not in _WITH_DEFAULTS and not is_named:
        raise UsageError(f"An entity name must be specified with --alter of {kinds}")
    if found.has("add-config") and found.has("add-config-file"):
        raise UsageError("Only one of --add-config or --add-config-file must be specified")
    if not found.has("add-config", "add-config-file", "delete-config"):
        raise UsageError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
