"""The options that name what a quota limits."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.client.admin.quotas import Entity
from kgctl.commands.shared.arguments import not_empty, only_one
from kgctl.commands.shared.settings import Settings
from kgctl.model.quotas import DEFAULT

User = Annotated[
    str | None, typer.Option("--user", metavar="NAME", callback=not_empty, help="The user with this name.")
]
UserDefault = Annotated[bool, typer.Option("--user-default", help="All users without a quota of their own.")]
ClientId = Annotated[
    str | None, typer.Option("--client-id", metavar="ID", callback=not_empty, help="Clients with this client id.")
]
ClientDefault = Annotated[
    bool, typer.Option("--client-id-default", help="All client ids without a quota of their own.")
]
Ip = Annotated[
    str | None, typer.Option("--ip", metavar="ADDRESS", callback=not_empty, help="Connections from this address.")
]
IpDefault = Annotated[bool, typer.Option("--ip-default", help="All addresses without a quota of their own.")]


def entity_of(
    ctx: typer.Context,
    user: str | None,
    user_default: bool,
    client_id: str | None,
    client_default: bool,
    ip: str | None,
    ip_default: bool,
    *,
    needed: bool = True,
) -> Entity:
    only_one({"--user": user, "--user-default": user_default})
    only_one({"--client-id": client_id, "--client-id-default": client_default})
    only_one({"--ip": ip, "--ip-default": ip_default})
    found = Entity(
        DEFAULT if user_default else user, DEFAULT if client_default else client_id, DEFAULT if ip_default else ip
    )
    if needed and not found.parts:
        ctx.fail(
            "Name a user, a client id or both, or an IP address: --user, --client-id, --ip, or their --...-default."
        )
    if found.ip is not None and len(found.parts) > 1:
        raise typer.BadParameter("cannot be combined with a user or a client id.", param_hint="'--ip'")
    return found


def explain(chosen: Settings, entity: Entity, *words: str) -> None:
    types = {"user": "users", "client-id": "clients", "ip": "ips"}
    named = [word for kind in entity.parts for word in ("--entity-type", types[kind])]
    for name in entity.parts.values():
        named += ["--entity-default"] if name == DEFAULT else ["--entity-name", name]
    chosen.explain_as("kafka-configs.sh", *words[:1], *named, *words[1:])
