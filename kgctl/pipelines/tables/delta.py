"""Tables in Delta Lake's format, through the package deltalake (no JVM).

Each commit has an application transaction: the prefix of the batch id as application id, its number as version.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from functools import partial
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.tables.arrow import arrow_schema
from kgctl.pipelines.tables.known_ids import KnownIds, family_of
from kgctl.pipelines.tables.logged import Entry, LastNumbers, LoggedFolder, now_ms
from kgctl.pipelines.tables.merge_plans import TARGET
from kgctl.pipelines.tables.state import CommittedFile, TableState

_ENTRY = "kgctl"


class DeltaFolder(LoggedFolder):
    """Readers of the log keep old files: they are deleted a week after they were replaced (vacuum)."""

    def state(self) -> TableState:
        table = self._open()
        if table is None:
            return self.state_of((), KnownIds(), None)
        if "deletionVectors" in (table.protocol().reader_features or ()):
            raise Precondition(f"{self.folder}: another program enabled deletion vectors, which kgctl cannot read")
        entry = self._entry(table)
        rows = pa.table(table.get_add_actions(flatten=True)).select(["path", "num_records", "size_bytes"]).to_pylist()
        files = [
            CommittedFile(unquote(row["path"]), "", row["num_records"], row["size_bytes"], entry.schema) for row in rows
        ]
        written_ms = table.history(1)[0]["timestamp"] if entry.batches else None
        known = LastNumbers(lambda prefix: table.transaction_version(_app(prefix)), entry.batches)
        return self.state_of(sorted(files, key=lambda file: file.path), known, written_ms)

    def entry(self) -> Entry:
        table = self._open()
        return Entry() if table is None else self._entry(table)

    def publish(self, batch_id: str, files: Sequence[CommittedFile], entry: Entry) -> None:
        schema = arrow_schema(self.table).append(pa.field("date", pa.date32()))
        table = DeltaTable.create(str(self.folder), schema, mode="ignore", partition_by=["date"])
        (prefix, _), number = family_of(batch_id)
        actions = [
            AddAction(
                path=file.path,
                size=file.size,
                partition_values={"date": file.day.removeprefix("date=")},
                modification_time=now_ms(),
                data_change=True,
                stats=json.dumps({"numRecords": file.rows}),
            )
            for file in files
        ]
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            ["date"],
            commit_properties=_properties(entry, [Transaction(_app(prefix), number)]),
        )

    def drop_before(self, first: date) -> None:
        table = self._open()
        assert table is not None
        table.delete(f"date < '{first.isoformat()}'", commit_properties=_properties(self._entry(table)))
        table.vacuum(dry_run=False, commit_properties=_properties(self._entry(table)))

    def merge_files(self) -> None:
        table = self._open()
        assert table is not None
        properties = _properties(self._entry(table))
        table.optimize.compact(target_size=TARGET, commit_properties=properties)
        table.vacuum(dry_run=False, commit_properties=properties)

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(str(self.folder))
        except TableNotFoundError:
            return None

    def _entry(self, table: DeltaTable) -> Entry:
        # The newest commit has one, unless another program wrote it.
        for history in (partial(table.history, 1), table.history):
            for commit in history():
                if _ENTRY in commit:
                    return Entry(**json.loads(commit[_ENTRY]))
        return Entry()


def _properties(entry: Entry, transactions: list[Transaction] | None = None) -> CommitProperties:
    return CommitProperties(custom_metadata={_ENTRY: json.dumps(asdict(entry))}, app_transactions=transactions)


def _app(prefix: str) -> str:
    return f"kgctl-{prefix}"
