"""`kgctl configs set`: give configs of one resource a value."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.configs.arguments import Name, Type, explain, resource_of, type_of
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.commands.topics.arguments import pairs

EPILOG = examples(
    "kgctl configs set topic orders retention.ms=86400000",
    "kgctl configs set topic orders cleanup.policy=compact,delete --execute",
    "kgctl configs set broker default log.retention.ms=604800000 --execute",
    "kgctl configs set group orders consumer.session.timeout.ms=50000 --execute",
)


@shows("config-changes")
@changes(names="name", when="execute")
def set_configs(
    ctx: typer.Context,
    type_: Type,
    name: Name,
    values: Annotated[list[str], typer.Argument(metavar="CONFIG=VALUE...", show_default=False)],
    execute: Execute = False,
) -> None:
    """Set configs of a resource.

    TYPE is topic, broker, broker-logger, group or client-metrics. NAME is the id of a broker, or "default" for all
    brokers. Other configs of the resource keep their values; of several changes, all are made or none. The cluster
    checks the plan. Clusters before Kafka 2.3 are refused: they could only replace all configs.
    """
    resource = resource_of(type_of(type_), name)
    wanted: dict[str, str | None] = {**pairs(values, "CONFIG=VALUE")}
    added = ",".join(
        f"{config}=[{value}]" if "," in (value or "") else f"{config}={value}" for config, value in wanted.items()
    )
    explain(settings(ctx), [resource], "--alter", "--add-config", added)
    with settings(ctx).admin() as admin:
        rows = admin.plan_configs([resource], wanted)
        if execute:
            rows = admin.change_configs(rows)
    settings(ctx).show(rows, kind="config-changes")
    note_dry_run(execute, [row.error for row in rows], all_or_nothing=True)
    conclude((row.error for row in rows), len(rows))
