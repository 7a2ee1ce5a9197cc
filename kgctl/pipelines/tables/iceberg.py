"""Tables in Iceberg's format, through the package pyiceberg (no JVM). The catalog is an SQLite file beside the tables.

A commit adds the files and sets a property of the table with the number of the batch, in one step; the summary of its
snapshot has the id of the batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, date, datetime, time

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.expressions import LessThan
from pyiceberg.table import Table

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.tables.arrow import arrow_schema
from kgctl.pipelines.tables.known_ids import KnownIds, family_of
from kgctl.pipelines.tables.logged import Entry, LastNumbers, LoggedFolder
from kgctl.pipelines.tables.state import CommittedFile, TableState

CATALOG_FILE, CATALOG, NAMESPACE = "_iceberg.db", "kgctl", "kgctl"
_ENTRY, _NUMBER, _BATCH = "kgctl.entry", "kgctl.number.", "kgctl.batch"
# Each commit writes all metadata again; the files of earlier commits are deleted.
_PROPERTIES = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "10"}


class IcebergFolder(LoggedFolder):
    """Iceberg's metadata has absolute paths: the folder must stay where it is."""

    def state(self) -> TableState:
        with self._open() as table:
            if table is None:
                return self.state_of((), KnownIds(), None)
            entry = _entry(table)
            tasks = [task.file for task in table.scan().plan_files()]
            files = [
                CommittedFile(
                    self._relative(file.file_path), "", file.record_count, file.file_size_in_bytes, entry.schema
                )
                for file in tasks
            ]
            numbers = {
                name.removeprefix(_NUMBER): int(value)
                for name, value in table.properties.items()
                if name.startswith(_NUMBER)
            }
            known = LastNumbers(numbers.get, entry.batches)
            written_ms = table.metadata.last_updated_ms if entry.batches else None
        return self.state_of(sorted(files, key=lambda file: file.path), known, written_ms)

    def entry(self) -> Entry:
        with self._open() as table:
            return Entry() if table is None else _entry(table)

    def publish(self, batch_id: str, files: Sequence[CommittedFile], entry: Entry) -> None:
        (prefix, _), number = family_of(batch_id)
        with self._catalog() as catalog:
            catalog.create_namespace_if_not_exists(NAMESPACE)
            table = catalog.create_table_if_not_exists(
                self._name, arrow_schema(self.table), location=self._location, properties=_PROPERTIES
            )
            with table.transaction() as transaction:
                if files:
                    transaction.add_files(
                        [f"{self._location}/{file.path}" for file in files],
                        snapshot_properties={_BATCH: batch_id},
                        check_duplicate_files=False,
                    )
                transaction.set_properties({_ENTRY: json.dumps(asdict(entry)), f"{_NUMBER}{prefix}": str(number)})

    def drop_before(self, first: date) -> None:
        with self._open() as table:
            assert table is not None
            table.delete(LessThan(self.table.day_of, datetime.combine(first, time(), UTC).isoformat()))

    def merge_files(self) -> None:
        self.refuse_merge()

    def refuse_merge(self) -> None:
        raise Precondition(
            "pyiceberg cannot merge the files of Iceberg tables: let an engine do it, such as Spark's "
            "rewrite_data_files, and run maintain without --merge"
        )

    @property
    def _name(self) -> str:
        return f"{NAMESPACE}.{self.folder.name}"

    @property
    def _location(self) -> str:
        return f"file://{self.folder.absolute()}"

    @contextmanager
    def _catalog(self) -> Iterator[SqlCatalog]:
        out = self.folder.parent.absolute()
        catalog = SqlCatalog(CATALOG, uri=f"sqlite:///{out / CATALOG_FILE}", warehouse=f"file://{out}")
        try:
            yield catalog
        finally:
            catalog.close()

    @contextmanager
    def _open(self) -> Iterator[Table | None]:
        if not (self.folder.parent / CATALOG_FILE).exists():
            yield None
            return
        with self._catalog() as catalog:
            try:
                table = catalog.load_table(self._name)
            except NoSuchTableError:
                table = None
            yield table

    def _relative(self, path: str) -> str:
        prefix = f"{self._location}/"
        if not path.startswith(prefix):
            raise Precondition(
                f"{self.folder}: Iceberg looks for {path}; its metadata has absolute paths, so move the folder back"
            )
        return path.removeprefix(prefix)


def _entry(table: Table) -> Entry:
    text = table.properties.get(_ENTRY)
    return Entry() if text is None else Entry(**json.loads(text))
