"""What tables with a log of another format share: files get their names first, and an entry in the log commits them.

A process that dies between the two leaves files that are in no log. Readers of the log do not see them, and the same batch,
written again, replaces them. Reading the folder without the log is not supported for these formats.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.tables.durable import make_folder, sync, sync_tree
from kgctl.pipelines.tables.known_ids import KnownIds, family_of
from kgctl.pipelines.tables.manifest import TableFolder, Writer
from kgctl.pipelines.tables.state import CommittedFile, Fold, Note, StagedFile, TableState

# The checkpoint of a stream has eight such digits, and Spark counts its batches: see jobs.checkpoints.
_OF_STREAM = re.compile(r".*-[0-9a-f]{8}-")


class LastNumbers(KnownIds):
    """The ids that a log knows by the number of the newest batch of each prefix.

    Spark repeats no batch of a stream but the newest, and never goes back: all numbers up to it are known. Of other ids, such
    as `lag-1767225600000`, only the newest can be repeated, and only it is known.
    """

    def __init__(self, newest: Callable[[str], int | None], committed: int) -> None:
        super().__init__()
        self._newest, self._committed = newest, committed

    def __contains__(self, batch_id: str) -> bool:
        (prefix, _), number = family_of(batch_id)
        newest = self._newest(prefix)
        if newest is None:
            return False
        return number <= newest if _OF_STREAM.fullmatch(prefix) else number == newest

    def __len__(self) -> int:
        return self._committed


@dataclass(frozen=True, slots=True)
class Entry:
    """What kgctl adds to an entry of a log. `batches` were committed so far; `schema`: the version of the columns."""

    batches: int = 0
    schema: int = 1
    notes: Mapping[str, Note] = field(default_factory=dict)


class LoggedFolder(TableFolder):
    """A table in another format. One version of the columns holds for all of its files."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.table = TABLES[folder.name]

    @abstractmethod
    def entry(self) -> Entry:
        """Of the newest commit."""

    @abstractmethod
    def publish(self, batch_id: str, files: Sequence[CommittedFile], entry: Entry) -> None:
        """Commit the files, which have their names, with the id of the batch and the entry, in one step."""

    @abstractmethod
    def drop_before(self, first: date) -> None:
        """Drop the rows of earlier days."""

    @abstractmethod
    def merge_files(self) -> None:
        """Raises Precondition if the format's package cannot."""

    def write(self) -> Writer:
        return _LogWriter(self)

    def _recover(self) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)

    def state_of(self, files: Sequence[CommittedFile], known: KnownIds, written_ms: int | None) -> TableState:
        notes = self.entry().notes
        return TableState(Fold(written_ms=written_ms, merged=tuple(files), known=known, notes=notes), ())


class _LogWriter(Writer):
    _table: LoggedFolder

    def commit(
        self,
        batch_id: str,
        staging: Path,
        files: Sequence[StagedFile],
        notes: Mapping[str, Note] | None = None,
        facts: Mapping[str, Any] | None = None,
        schema: int = 1,
    ) -> bool:
        table = self._table
        table.manifest_of(batch_id)
        if table.state().knows(batch_id):
            self.discard(staging)
            return False
        before = table.entry()
        if before.batches and before.schema != schema:
            raise Precondition(
                f"{table.folder}: its columns have version {before.schema}, and this kgctl writes version {schema}; "
                "give another --out"
            )
        sync_tree(staging, [file.path for file in files])
        committed = self.named(batch_id, staging, files, schema)
        for file in committed:
            make_folder((table.folder / file.path).parent)
            os.replace(staging / file.staged, table.folder / file.path)
        for folder in {(table.folder / file.path).parent for file in committed}:
            sync(folder)
        table.publish(batch_id, committed, Entry(before.batches + 1, schema, {**before.notes, **(notes or {})}))
        self.discard(staging)
        return True


def now_ms() -> int:
    return time.time_ns() // 1_000_000
