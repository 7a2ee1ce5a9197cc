"""What `kgctl pipeline run` and `archive` have in common: options of the Spark process, and the settings that they become."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from broker.secret_names import is_secret
from kgctl.commands.shared.settings import settings
from kgctl.commands.shared.times import parse_datetime, parse_duration
from kgctl.pipelines.settings import SOURCES, RunSettings
from kgctl.pipelines.source.option_names import OF_RUNS, BadOption, known_to_read

LOG_NAME = "spark.log"
# A path has one slash less than the address that it was made of.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_MASTER = re.compile(r"local(-cluster)?(\[[^]]+\])?$|yarn$|(spark|k8s)://.")

Once = Annotated[bool, typer.Option("--once", help="Read up to the current end of the topics. [default]")]
Follow = Annotated[bool, typer.Option("--follow", help="Keep running until Ctrl-C.")]
Source = Annotated[
    str,
    typer.Option(
        "--source",
        metavar="|".join(SOURCES),
        help="kgctl: kgctl's own reader; kafka: Spark's connector, if its jars are installed.",
    ),
]
Trigger = Annotated[
    float, typer.Option("--trigger", metavar="SECONDS", help="With --follow: how often to check for new records.")
]
MaxOutage = Annotated[
    str,
    typer.Option(
        "--max-outage", metavar="DURATION", help="With --follow: how long to wait for an unreachable cluster."
    ),
]
Master = Annotated[str, typer.Option("--master", metavar="URL", help="local[*], spark://HOST:PORT, yarn or k8s://URL.")]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A Spark setting, such as spark.executor.memory=2g; repeatable."),
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="An option of the source, such as minPartitions=8; repeatable."),
]
JsonLines = Annotated[bool, typer.Option("--json", help="Write progress as JSON Lines to stdout.")]


def check_once(*, once: bool, follow: bool) -> None:
    if once and follow:
        raise typer.BadParameter("Give --once or --follow, not both.", param_hint="'--once', '--follow'")


def is_given(ctx: typer.Context, parameter: str) -> bool:
    """Whether the option is on the command line. Its default says nothing."""
    return getattr(ctx.get_parameter_source(parameter), "name", None) == "COMMANDLINE"


def settings_of(
    ctx: typer.Context,
    out: Path,
    *,
    source: str,
    since: str,
    follow: bool,
    trigger: float,
    max_outage: str,
    max_offsets: int | None,
    master: str,
    conf: Sequence[str] | None,
    option: Sequence[str] | None,
    quick: bool,
) -> RunSettings:
    """Settings without jobs and topics, for the cluster of the command line."""
    if not follow:
        for name in ("trigger", "max_outage", "scan_every"):
            if is_given(ctx, name):
                raise typer.BadParameter("Give it with --follow.", param_hint=f"'--{name.replace('_', '-')}'")
    folder = local_folder(out, "--out")
    connection = settings(ctx).portable_connection()
    return RunSettings(
        jobs=(),
        bootstrap=",".join(map(str, connection.bootstrap)),
        out=folder,
        source=one_of(source, SOURCES, "--source"),
        since=_since(since),
        follow=follow,
        trigger_s=above_zero(trigger, "--trigger"),
        max_outage_s=parse_duration(max_outage, "--max-outage") / 1000,
        max_offsets_per_trigger=max_offsets,
        master=_master(master),
        conf=tuple(_pair(text, "--conf") for text in conf or ()),
        source_options=_source_options(option or (), source),
        quick=quick,
        timeout_s=connection.timeout,
        log_file=f"{folder}/{LOG_NAME}",
        read_only=settings(ctx).target().is_read_only,
        connection_properties=tuple(one for one in connection.properties if one[0] != "bootstrap.servers"),
    )


def one_of(value: str, known: tuple[str, ...], option: str) -> str:
    if value not in known:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.", param_hint=f"'{option}'")
    return value


def _since(text: str) -> str | int:
    if text in ("earliest", "latest"):
        return text
    return parse_datetime(text, "--from")


def local_folder(path: Path, option: str) -> str:
    """The absolute path of a folder that need not exist."""
    scheme = _SCHEME.match(str(path))
    if scheme:
        raise typer.BadParameter(
            f"Addresses such as {scheme[1]}:// are not supported: give a folder that all nodes can write to.",
            param_hint=f"'{option}'",
        )
    return str(path.absolute())


def _master(text: str) -> str:
    if not _MASTER.match(text):
        raise typer.BadParameter(
            f"{text!r} is not local, local[N], local[*], spark://HOST:PORT, yarn or k8s://URL.", param_hint="'--master'"
        )
    return text


def above_zero(value: float, option: str) -> float:
    if not 0 < value <= 86400 * 365:
        raise typer.BadParameter(f"{value:g} is not a number of seconds above 0.", param_hint=f"'{option}'")
    return value


def _pair(text: str, flag: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE.", param_hint=f"'{flag}'")
    return key, value


def _source_options(texts: Sequence[str], source: str) -> tuple[tuple[str, str], ...]:
    options = tuple(map(_source_option, texts))
    if source == "kgctl":
        try:
            known_to_read(dict(options))
        except BadOption as error:
            raise typer.BadParameter(f"{error}.", param_hint="'--option'") from None
    return options


def _source_option(text: str) -> tuple[str, str]:
    name, value = _pair(text, "--option")
    if is_secret(name.removeprefix("kafka.")):
        raise typer.BadParameter(
            f"{name} is a secret, and other users can read command lines: use --context or --command-config.",
            param_hint="'--option'",
        )
    if name.lower() in map(str.lower, OF_RUNS):
        raise typer.BadParameter(f"A run sets {name} itself.", param_hint="'--option'")
    return name, value
