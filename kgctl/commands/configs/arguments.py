"""Arguments that the verbs of `kgctl configs` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from kgctl.client.admin.configs import ALL_BROKERS, BROKER, CLIENT_METRICS, GROUP, LOGGER, TOPIC, Resource
from kgctl.commands.shared.arguments import not_empty
from kgctl.commands.shared.settings import Settings

TYPES = (TOPIC, BROKER, LOGGER, GROUP, CLIENT_METRICS)
# How Kafka's tool spells the types.
_CLASSIC = {
    TOPIC: "topics",
    BROKER: "brokers",
    LOGGER: "broker-loggers",
    GROUP: "groups",
    CLIENT_METRICS: "client-metrics",
}

Type = Annotated[str, typer.Argument(metavar="TYPE", show_default=False, callback=not_empty)]
Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, callback=not_empty)]


def type_of(text: str) -> str:
    """The type of resource, also in the plural. Raises BadParameter."""
    lowered = text.lower()
    for kind in TYPES:
        if lowered in (kind, f"{kind}s"):
            return kind
    raise typer.BadParameter(f"{text!r} is not one of {', '.join(TYPES)}.", param_hint="'TYPE'")


def resource_of(kind: str, name: str) -> Resource:
    """The resource; a broker must be a number, or "default"."""
    is_known = name.isascii() and name.isdecimal() and len(name) < 11
    if (kind == BROKER and name != ALL_BROKERS and not is_known) or (kind == LOGGER and not is_known):
        also = f", or {ALL_BROKERS!r} for all brokers" if kind == BROKER else ""
        raise typer.BadParameter(f"{name!r} is not the id of a broker{also}.", param_hint="'NAME'")
    return Resource(kind, str(int(name)) if is_known and kind in (BROKER, LOGGER) else name)


def explain(chosen: Settings, resources: Sequence[Resource], action: str, *words: str) -> None:
    for resource in resources:
        is_default = resource.type == BROKER and resource.name == ALL_BROKERS
        entity = ["--entity-default"] if is_default else ["--entity-name", resource.name]
        chosen.explain_as("kafka-configs.sh", action, "--entity-type", _CLASSIC[resource.type], *entity, *words)
