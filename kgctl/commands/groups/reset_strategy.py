"""The options that say where `kgctl groups reset-offsets` moves offsets, and the targets that they mean."""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from kgctl.client.admin.reset_input import STRATEGIES, decoded, offsets_by_group, offsets_in, target_of
from kgctl.client.admin.reset_targets import Target
from kgctl.client.net.errors import BadValue, NotFound

ToEarliest = Annotated[bool, typer.Option("--to-earliest", help="Move to the start of the log.")]
ToLatest = Annotated[bool, typer.Option("--to-latest", help="Move to the end of the log.")]
ToCurrent = Annotated[
    bool, typer.Option("--to-current", help="Keep the committed offset; without one, move to the end.")
]
ToOffset = Annotated[int | None, typer.Option("--to-offset", metavar="N", help="Move to this offset.")]
ShiftBy = Annotated[
    int | None, typer.Option("--shift-by", metavar="N", help="Move N records forward, or back if N is negative.")
]
ByDuration = Annotated[
    str | None,
    typer.Option(
        "--by-duration", metavar="DURATION", help="Move to where the log was that long ago: 1h30m or PT1H30M."
    ),
]
ToDatetime = Annotated[
    str | None,
    typer.Option(
        "--to-datetime",
        metavar="TIME",
        help="Move to a time: 2026-01-31T12:00:00.000+01:00, milliseconds since 1970, or now-15m. [default zone: UTC]",
    ),
]
ToGroup = Annotated[
    str | None,
    typer.Option("--to-group", metavar="GROUP", help="Move to the committed offsets of another group."),
]
FromFile = Annotated[
    str | None,
    typer.Option("--from-file", metavar="CSV", help="Move to the offsets of an exported plan; - is stdin."),
]


def only_strategy(ctx: typer.Context, given: Mapping[str, Any]) -> tuple[str, Any]:
    """The one option that is given, with its value; a usage error if it is not one."""
    chosen = {option: value for option, value in given.items() if value is not None and value is not False}
    if len(chosen) == 1:
        return next(iter(chosen.items()))
    *others, last = (f"--{name}" for name in STRATEGIES)
    message = f"Give exactly one of {', '.join(others)} and {last}."
    if not chosen:
        ctx.fail(message)
    raise typer.BadParameter(message, param_hint=", ".join(f"'{name}'" for name in chosen))


def target_of_option(option: str, value: Any) -> Target:
    """The target of any option but --from-file."""
    strategy = next(name for name in STRATEGIES if option == f"--{name}")
    try:
        return target_of("", strategy, str(value), int(time.time() * 1000))
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint=f"'{option}'") from None


def targets_in_file(path: str, groups: Sequence[str]) -> dict[str, Target]:
    """The targets of the groups in a plan file; only a file about one group may leave out its name.

    Raises NotFound if the only group is not in the file.
    """
    try:
        text = decoded(_stdin if path == "-" else Path(path).read_bytes, "stdin" if path == "-" else path)
        if len(groups) == 1:
            return {groups[0]: Target("file", offsets=offsets_in(groups[0], text, path))}
        plans = offsets_by_group(text, path)
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint="'--from-file'") from None
    if not plans:
        raise NotFound(f"{path} has no reset plan.")
    return {group: Target("file", offsets=offsets) for group, offsets in plans.items()}


def _stdin() -> bytes:
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed")
    return sys.stdin.buffer.read()
