"""`kgctl configs set`: give configs of one resource a value."""

from __future__ import annotations

from typing import Annotated

import typer

from broker.secret_names import is_secret
from kgctl.commands.configs.arguments import Name, Type, explain, resource_of, type_of
from kgctl.commands.configs.changing import change
from kgctl.commands.configs.secret_values import OPTION, values_of_files
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled
from kgctl.commands.shared.settings import settings
from kgctl.commands.topics.arguments import pairs

EPILOG = examples(
    "kgctl configs set topic orders retention.ms=86400000",
    "kgctl configs set topic orders cleanup.policy=compact,delete --execute",
    "kgctl configs set broker default log.retention.ms=604800000 --execute",
    "kgctl configs set group orders consumer.session.timeout.ms=50000 --execute",
    "kgctl configs set broker 1 --value-file ssl.key.password=secret.txt",
)


@shows("config-changes")
@journaled
@changes(names="name", when="execute")
def set_configs(
    ctx: typer.Context,
    type_: Type,
    name: Name,
    values: Annotated[list[str] | None, typer.Argument(metavar="[CONFIG=VALUE...]", show_default=False)] = None,
    value_file: Annotated[
        list[str] | None,
        typer.Option(
            OPTION,
            metavar="CONFIG=FILE",
            help="Read the value from FILE, - is stdin: a secret on the command line is visible to others; repeatable.",
        ),
    ] = None,
    execute: Execute = False,
) -> None:
    """Set configs of a resource.

    TYPE is topic, broker, broker-logger, group or client-metrics. NAME is the id of a broker, or "default" for all
    brokers. Other configs of the resource keep their values; of several changes, all are made or none. The cluster
    checks the plan. Values of passwords, keys and of --value-file are not shown. Clusters before Kafka 2.3 are refused:
    they could only replace all configs.
    """
    resource = resource_of(type_of(type_), name)
    given = pairs(values or [], "CONFIG=VALUE")
    from_files = values_of_files(value_file or [], given)
    wanted: dict[str, str | None] = {**given, **from_files}
    if not wanted:
        raise typer.BadParameter(f"Give CONFIG=VALUE, or {OPTION} CONFIG=FILE.", param_hint="'CONFIG=VALUE'")
    added = ",".join(
        f"{config}=***"
        if config in from_files or is_secret(config)
        else f"{config}=[{value}]"
        if "," in (value or "")
        else f"{config}={value}"
        for config, value in wanted.items()
    )
    explain(settings(ctx), [resource], "--alter", "--add-config", added)
    change(settings(ctx), "configs set", resource, wanted, execute=execute, from_files=from_files)
