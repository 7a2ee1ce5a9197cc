"""`kgctl store export`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import KgctlError, NotFound, Precondition
from kgctl.commands.shared.effects import reads_files
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.out_files import Overwrite, check_out
from kgctl.commands.store.opening import Directory, opened
from kgctl.model.store import StoreRecord
from kgctl.render import note
from kgctl.store.export import FORMATS, RECORDS, SINGLE, CannotExport, Source
from kgctl.store.export import export as write
from kgctl.store.offline import Offline
from kgctl.store.records import records
from kgctl.store.tables import TABLES

EPILOG = examples(
    "kgctl store export ./data --out data.sqlite",
    "kgctl store export ./data --out orders.jsonl --topic orders",
    "kgctl store export ./data --out offsets.csv --table offsets",
    "kgctl store export ./data --out orders.parquet --topic orders",
)


@reads_files
def export(
    ctx: typer.Context,
    directory: Directory,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "--to",
            metavar="FILE",
            help="The new file. Its name says the format: .json, .jsonl, .csv, .sqlite, .db or .parquet.",
            show_default=False,
        ),
    ],
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="TABLE",
            help=f"One of {RECORDS}, {', '.join(TABLES)}; repeatable. [default: all in JSON and SQLite, else {RECORDS}]",
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="Records of this topic only; repeatable. [default: all topics that are not internal]",
        ),
    ] = None,
    uncommitted: Annotated[
        bool, typer.Option("--uncommitted", help="Also records of transactions that are open or aborted.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write records and tables to a file.

    Keys, values and headers are texts, or base64 where they are not UTF-8: the encoding stands beside them. JSONL, CSV and
    Parquet hold one table; Parquet needs the extra arrow. A damaged batch ends the export without a file.
    See `kgctl store info` for how DIR is read.
    """
    format_name = FORMATS.get(out.suffix.lower())
    if format_name is None:
        raise typer.BadParameter(f"the name must end in one of {', '.join(FORMATS)}.", ctx=ctx, param_hint="'--out'")
    check_out(out, "--out", overwrite=overwrite)
    names = _tables(ctx, table, topic, is_single=format_name in SINGLE)
    if Path(os.path.realpath(out)).is_relative_to(os.path.realpath(directory)):
        raise Precondition(f"{out} is inside {directory}, where nothing is written")
    with opened(ctx, directory) as offline:
        topics = _topics(offline, topic)
        sources = {
            name: Source(StoreRecord, records(offline, topics, uncommitted=uncommitted))
            if name == RECORDS
            else Source(TABLES[name].row, TABLES[name].rows(offline))
            for name in names
        }
        try:
            counts = write(out, format_name, sources)
        except CannotExport as error:
            raise KgctlError(str(error)) from None
    note(f"Wrote {out}: {', '.join(_counted(count, name) for name, count in counts.items() if count)}")


def _counted(count: int, name: str) -> str:
    words = name.replace("_", " ")
    return f"{count:,} {words.removesuffix('s') if count == 1 else words}"


def _tables(ctx: typer.Context, given: list[str] | None, topics: list[str] | None, *, is_single: bool) -> list[str]:
    known = [RECORDS, *TABLES]
    for name in given or ():
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}.", ctx=ctx, param_hint="'--table'")
    names = list(dict.fromkeys(given or ([RECORDS] if is_single or topics else known)))
    if is_single and len(names) > 1:
        raise typer.BadParameter("Files of this format hold one table.", ctx=ctx, param_hint="'--table'")
    if topics and RECORDS not in names:
        raise typer.BadParameter(f"It selects {RECORDS}, which --table leaves out.", ctx=ctx, param_hint="'--topic'")
    return names


def _topics(offline: Offline, given: list[str] | None) -> set[str]:
    known = {topic.name: topic.internal for topic in offline.directory.topics}
    for name in given or ():
        if name not in known:
            raise NotFound(f"{offline.path} has no topic {name!r}")
    return set(given) if given else {name for name, internal in known.items() if not internal}
