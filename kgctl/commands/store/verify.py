"""`kgctl store verify`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kgctl.commands.shared.effects import reads_files, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.commands.store.opening import Directory, opened
from kgctl.exit_codes import ERROR
from kgctl.model.store import StoreCheck, StoreDamage
from kgctl.render import TABLES, note

if TYPE_CHECKING:
    from broker.inspection import DataDirectory

PROGRESS_S = 1.0
EPILOG = (
    "Exit codes: 0 everything is as it was written, 1 damage was found (each is named), 5 DIR holds no data of a broker."
    "\n\n" + examples("kgctl store verify ./data", "kgctl store verify ./data -o json")
)


@shows("store-checks", "store-damages")
@reads_files
def verify(ctx: typer.Context, directory: Directory) -> None:
    """Check every checksum and the hash chain.

    Reads all of DIR: pages of store.db and frames of its WAL, its structure and indexes, the hash chain of the commits and the
    commit marker, the rows of internal topics, the acknowledged ends, and each batch and trailer of the segment files.
    Programs get the damages: no rows, no damage. See `kgctl store info` for how DIR is read.
    """
    from broker.inspection import verify as check_all

    with opened(ctx, directory, damaged_too=True) as offline:
        checks = check_all(offline.directory, _Progress())
        unlisted = _unlisted(offline.directory)
    damages = [StoreDamage(*damage) for check in checks for damage in check.damages]
    chosen = settings(ctx)
    if chosen.output in TABLES:
        chosen.show(
            [StoreCheck(one.part, one.checked, one.size_bytes, len(one.damages)) for one in checks], kind="store-checks"
        )
        if damages:
            typer.echo()
    if damages or chosen.output not in TABLES:
        chosen.show(damages, kind="store-damages")
    for path in unlisted:
        note(f"Note: {path} belongs to no topic of the store")
    if damages:
        note(f"{len(damages)} {'damage' if len(damages) == 1 else 'damages'} found")
        raise typer.Exit(ERROR)


def _unlisted(directory: DataDirectory) -> list[Path]:
    """What belongs to no topic; nothing if the topics cannot be read, which is in the checks already."""
    from broker.inspection import StoreDamageError, unlisted_files

    try:
        return unlisted_files(directory)
    except StoreDamageError:
        return []


class _Progress:
    """A line on stderr now and then; a fast check shows none."""

    def __init__(self) -> None:
        self._shown_at = time.monotonic()

    def __call__(self, done_bytes: int, partition: str) -> None:
        now = time.monotonic()
        if now - self._shown_at >= PROGRESS_S:
            self._shown_at = now
            note(f"Checked {done_bytes >> 20} MiB of segments, up to {partition} ...")
