"""`kgctl configs describe`: configs with their sources and defaults."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.client.admin.configs import CLIENT_METRICS, GROUP
from kgctl.commands.configs.arguments import Type, explain, resource_of, type_of
from kgctl.commands.shared.arguments import not_empty
from kgctl.commands.shared.classic import option
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.render import note

EPILOG = examples(
    "kgctl configs describe topic orders",
    "kgctl configs describe topic orders --config retention.ms -o wide",
    "kgctl configs describe broker 1 --all",
    "kgctl configs describe broker default",
    "kgctl configs describe group orders",
)


@shows("configs")
@reads
def describe(
    ctx: typer.Context,
    type_: Type,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", show_default=False, callback=not_empty)
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="NAME", callback=not_empty, help="Only this config; repeatable."),
    ] = None,
    all_of_them: Annotated[
        bool, typer.Option("--all", help="Also configs that have their default. [default: only others]")
    ] = False,
) -> None:
    """Show configs, and where each value comes from.

    TYPE is topic, broker, broker-logger, group or client-metrics. Without NAME, all resources of the type. The name of a
    broker is its id; "default" is what all brokers have unless they have a value of their own.

    Sensitive values are not sent by the cluster and shown as (hidden). -o wide adds the default, the type, and whether a
    config is read-only.
    """
    kind = type_of(type_)
    resources = [resource_of(kind, name) for name in dict.fromkeys(names or ())]
    explain(settings(ctx), resources, "--describe", *option("--all", all_of_them))
    with settings(ctx).admin() as admin:
        resources = resources or admin.resources_of(kind)
        rows = admin.describe_configs(resources, config or (), all_of_them=all_of_them) if resources else []
    settings(ctx).show(rows, kind="configs")
    if not rows and resources and not all_of_them:
        note("No config differs from its default. Add --all to see the defaults.")
    elif not resources and kind in (GROUP, CLIENT_METRICS):
        note("The cluster has no such configs.")
    conclude((row.error for row in rows), len(rows))
