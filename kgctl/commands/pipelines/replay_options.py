"""The options of `kgctl pipeline replay` and `kgctl pipeline restore-groups`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from kgctl.commands.shared.arguments import not_empty

_RATE = re.compile(r"(\d+(?:\.\d+)?)([km]?)(?:/s)?", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9._-]{1,200}")
_UNITS = {"": 1, "k": 1000, "m": 1_000_000}


def _checked_id(name: str | None) -> str | None:
    """A name of a folder and of groups."""
    if name is not None and not _ID.fullmatch(name):
        raise typer.BadParameter(
            f"{name!r} has other characters than letters, digits, '.', '_' and '-', or more than 200."
        )
    return name


To = Annotated[
    str | None,
    typer.Option("--to", metavar="TOPIC", callback=not_empty, help="The topic to write, if one topic is replayed."),
]
Topic = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="NAME[=NEW]",
        callback=not_empty,
        help="Replay this topic of the archive, under its own or a new name; repeatable.",
    ),
]
All = Annotated[bool, typer.Option("--all-topics", help="Replay all topics of the archive under their own names.")]
Create = Annotated[
    bool, typer.Option("--create", help="Create missing topics with the partitions and configs of the archive.")
]
Replicas = Annotated[
    int | None,
    typer.Option(
        "--replication-factor",
        min=1,
        metavar="N",
        help="With --create. [default: default.replication.factor of the broker]",
    ),
]
ByPartition = Annotated[
    str,
    typer.Option(
        "--partitions",
        metavar="same|by-key",
        help="same: the partitions of the archive; by-key: the producer chooses the partition by key.",
    ),
]
Key = Annotated[list[str] | None, typer.Option("--key", metavar="TEXT", help="Only records with this key; repeatable.")]
KeyMatch = Annotated[
    str | None, typer.Option("--key-match", metavar="REGEX", help="Only records whose whole key matches.")
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        callback=not_empty,
        help="Only records at or after this time: ISO 8601, milliseconds, or now-7d.",
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", callback=not_empty, help="Only records before this time.")
]
Shift = Annotated[
    str | None,
    typer.Option("--shift-time", metavar="DURATION", help="Add this to each timestamp, such as 7d; -1h30m subtracts."),
]
Now = Annotated[bool, typer.Option("--now", help="Give each record the time at which it is sent.")]
Rate = Annotated[
    str | None,
    typer.Option(
        "--rate", metavar="N/s", help="At most this many records per second, such as 500 or 10k/s. [default: no limit]"
    ),
]
Speed = Annotated[
    str | None,
    typer.Option(
        "--speed",
        metavar="X",
        help="Keep the recorded intervals between records: 1 for the original speed, 10 for ten times that. [default: as fast "
        "as possible]",
    ),
]
NoTransactions = Annotated[
    bool,
    typer.Option(
        "--no-transactions", help="For clusters without transactions: a crash repeats records, but loses none."
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="NAME",
        callback=_checked_id,
        help="The id of the replay; another one writes the records again. [default: derived from archive, cluster and options]",
    ),
]
Restart = Annotated[
    bool, typer.Option("--restart", help="Start over, regardless of how far an earlier run with this id was.")
]
State = Annotated[
    Path | None,
    typer.Option("--state", metavar="PATH", help="The folder for the state of replays. [default: _replays in DIR]"),
]


def distinct(pairs: Iterable[tuple[str, str]], option: str) -> dict[str, str]:
    """Old and new names. Raises BadParameter if one stands there twice: only one of them would count."""
    found: dict[str, str] = {}
    for old, new in pairs:
        if old in found:
            raise typer.BadParameter(f"{old!r} is given twice.", param_hint=f"'{option}'")
        found[old] = new
    return found


def parse_rate(text: str | None) -> float | None:
    """Records per second."""
    if text is None:
        return None
    found = _RATE.fullmatch(text.strip().lower())
    rate = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 0 < rate < 1e9:
        raise typer.BadParameter(
            f"{text!r} is not a number of records per second, such as 500 or 10k/s.", param_hint="'--rate'"
        )
    return rate


def parse_speed(text: str | None) -> float | None:
    """Recorded seconds per second."""
    try:
        speed = None if text is None else float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if speed is not None and not 0 < speed < 1e9:
        raise typer.BadParameter(f"{text!r} is not a speed, such as 1 or 10.", param_hint="'--speed'")
    return speed
