"""`kgctl store info`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.commands.shared.effects import reads_files, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.commands.store.opening import Directory, opened
from kgctl.model.store import StoreInfo
from kgctl.render import TABLES as TABLE_FORMATS
from kgctl.render.sheet import show_sheet
from kgctl.store.tables import TABLES, kind_of

if TYPE_CHECKING:
    from kgctl.store.offline import Offline

EPILOG = examples(
    "kgctl store info ./data",
    "kgctl store info ./data topics",
    "kgctl store info ./data segments -o wide",
    "kgctl store info ./data users -o json",
)
KILLED = "killed"


@shows("store-info", *map(kind_of, TABLES))
@reads_files
def info(
    ctx: typer.Context,
    directory: Directory,
    table: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help=f"One of {', '.join(TABLES)}.", show_default=False),
    ] = None,
) -> None:
    """Show what a data directory holds: an overview, or one table.

    Works while a broker uses the directory, after it stopped, and after it was killed. Reads a private copy of store.db
    with its WAL, made in the directory for temporary files; nothing in DIR is written or locked. Formats 1 to 8 are read.
    """
    chosen = settings(ctx)
    if table is not None and table not in TABLES:
        raise typer.BadParameter(f"{table!r} is not one of {', '.join(TABLES)}.", param_hint="'TABLE'")
    with opened(ctx, directory) as offline:
        if table is not None:
            chosen.show(list(TABLES[table].rows(offline)), kind=kind_of(table))
            return
        row = _overview(offline)
    if chosen.output in TABLE_FORMATS and not chosen.columns:
        show_sheet(row, "store-info")
    else:
        chosen.show([row], kind="store-info")


def _overview(offline: Offline) -> StoreInfo:
    counts = {name: sum(1 for _ in TABLES[name].rows(offline)) for name in ("groups", "transactions", "users", "acls")}
    directory = offline.directory
    return StoreInfo(
        str(offline.path),
        _broker(offline),
        directory.format_version,
        directory.cluster_id,
        directory.last_commit,
        _size(offline.path / "store.db"),
        _size(offline.path / "store.db-wal"),
        sum(one.size_bytes for one in offline.partitions),
        len(directory.topics),
        sum(topic.partition_count for topic in directory.topics),
        sum(len(one.segments) for one in offline.partitions),
        counts["groups"],
        len(offline.committed),
        counts["transactions"],
        counts["users"],
        counts["acls"],
    )


def _broker(offline: Offline) -> str:
    from broker.local import last_run

    if offline.directory.is_in_use:
        return "running"
    run = last_run(offline.path)
    if run is None:
        return "not running"
    return f"stopped: {run.reason}" if run.ended_ms is not None else KILLED


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
