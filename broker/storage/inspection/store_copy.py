"""A private copy of store.db and its WAL at one moment, with SQLite's own recovery.

No other process can open the files themselves: a running broker holds SQLite's exclusive lock, SQLite leaves a -shm file
behind, and without its WAL the database misses the last commits.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import apsw

from broker.storage.errors import NewerFormatError, StorageError, StoreDamageError, StoreMissingError
from broker.storage.file_ops import FileOps
from broker.storage.store.checked_pages import CheckedPages
from broker.storage.store.formats import APPLICATION_ID, FORMAT_VERSION, migrations
from broker.storage.store.values import Row, Value, as_int
from broker.storage.store.wal_frames import WAL_HEADER_BYTES

# The copy is repeated if the broker starts its WAL over meanwhile, which it does after each 8 MiB of changes.
ATTEMPTS = 50
# What a copy leaves free on the file system of the temporary files.
SPARE_BYTES = 64 << 20
REPORTED_FROM_BYTES = 64 << 20
MEMORY = "/dev/shm"
# How many times the size of the copy must be free in memory.
MEMORY_SHARE = 16

Report = Callable[[str], None]


class StoreCopy:
    """Rows of the store, in the newest format. Pages are checked when they are read, as a broker does.

    The copy lies in files without a name, which end with this process. `format_version` is that of the directory.
    `failure`: SQLite cannot open the copy, and every query raises it.
    """

    format_version = 0
    page_count = 0
    failure: StorageError | None = None

    def __init__(self, data_dir: Path, report: Report) -> None:
        self.path = data_dir / "store.db"
        self._opened = ExitStack()
        self._vfs = CheckedPages(FileOps())
        self._opened.callback(self._vfs.unregister)
        self._place = ""
        try:
            with _temporary_directory(_size(self.path)) as place:
                self._place = place
                _copy(self.path, Path(place), report)
                self.database = self._keep(os.path.join(place, "store.db"))
                self.wal = self._keep(os.path.join(place, "store.db-wal"))
                self._try_to_open(os.path.join(place, "store.db"))
        except BaseException:
            self.close()
            raise

    def _keep(self, path: str) -> int:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._opened.callback(os.close, descriptor)
        return descriptor

    def _try_to_open(self, path: str) -> None:
        try:
            self._open(path)
        except StorageError as error:
            self.failure = error
        except apsw.Error as error:
            self.failure = self._translated(error)

    def _open(self, path: str) -> None:
        self._db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=self._vfs.vfs_name)
        self._opened.callback(self._disconnect)
        for pragma in ("locking_mode=EXCLUSIVE", "mmap_size=0", "trusted_schema=OFF", "temp_store=MEMORY"):
            self._db.execute(f"PRAGMA {pragma}").fetchall()
        is_empty = self._one("SELECT count(*) FROM sqlite_master") == 0
        application_id, version = self._one("PRAGMA application_id"), self._one("PRAGMA user_version")
        if is_empty:
            raise StoreMissingError(f"{self.path} is empty")
        if application_id != APPLICATION_ID or not isinstance(version, int):
            raise StorageError(f"{self.path} belongs to another program (application id {application_id!r})")
        if version > FORMAT_VERSION:
            raise NewerFormatError(
                f"{self.path} has format {version}; this version of kgctl reads formats up to {FORMAT_VERSION}"
            )
        self.format_version = version
        self.page_count = as_int(self._one("PRAGMA page_count"))
        for _, script in migrations(version):
            self._db.execute(script)

    def _disconnect(self) -> None:
        self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        with suppress(apsw.Error):
            self._db.close(True)

    def close(self) -> None:
        self._opened.close()

    def query(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        return list(self.iterate(sql, values))

    def iterate(self, sql: str, values: Sequence[Value] = ()) -> Iterator[Row]:
        if self.failure is not None:
            raise self.failure
        try:
            yield from self._db.execute(sql, values)
        except apsw.Error as error:
            raise self._translated(error) from error

    def _one(self, sql: str) -> Value:
        rows: list[Row] = self._db.execute(sql).fetchall()
        return rows[0][0] if rows else None

    def meta(self, name: str) -> str | None:
        rows = self.query("SELECT value FROM meta WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def _translated(self, error: apsw.Error) -> StorageError:
        """The error with the name of the original file."""
        if self._vfs.failure is not None:
            text = Exception.__str__(self._vfs.failure)
            return StoreDamageError(text.replace(os.path.realpath(self._place), str(self.path.parent)))
        if isinstance(error, apsw.FullError):
            return StorageError(f"no space is left for the copy of {self.path}; TMPDIR names another place for it")
        if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
            return StoreDamageError(f"{self.path} is damaged: {error}")
        return StorageError(f"{self.path}: {error}")


def _temporary_directory(size: int) -> tempfile.TemporaryDirectory[str]:
    """In memory if there is plenty of room: a copy on the disk of the broker would make its syncs slower."""
    place = None
    with suppress(OSError):
        if "TMPDIR" not in os.environ and shutil.disk_usage(MEMORY).free >= MEMORY_SHARE * size:
            place = MEMORY
    try:
        return tempfile.TemporaryDirectory(prefix="kgctl-store-", dir=place)
    except OSError as error:
        raise StorageError(f"cannot copy the store to a temporary directory: {error}") from error


def _size(database: Path) -> int:
    return sum(path.stat().st_size for path in (database, database.with_name("store.db-wal")) if path.exists())


def _copy(database: Path, place: Path, report: Report) -> None:
    """Copy the database, then the WAL, until no commit started the WAL over in between.

    While it is not started over, a checkpoint changes only pages of the database that are in the WAL as well.
    """
    wal = database.with_name("store.db-wal")
    if not database.exists():
        raise StoreMissingError(f"{database} is missing")
    try:
        _check_room(database, place, report)
        for _ in range(ATTEMPTS):
            before = _wal_header(wal)
            shutil.copyfile(database, place / "store.db")
            (place / "store.db-wal").write_bytes(b"")
            with suppress(FileNotFoundError):
                shutil.copyfile(wal, place / "store.db-wal")
            if _wal_header(wal) == before:
                return
    except OSError as error:
        raise StorageError(f"cannot copy {database}: {error.strerror or error} ({error.filename})") from error
    raise StorageError(
        f"cannot copy {database}: the broker changes it faster than it can be copied; stop the broker, or try again"
    )


def _check_room(database: Path, place: Path, report: Report) -> None:
    size = _size(database)
    free = shutil.disk_usage(place).free
    if size + SPARE_BYTES > free:
        raise StorageError(
            f"a private copy of {database} needs {size >> 20} MiB of the {free >> 20} MiB that are free in"
            f" {place.parent}, and {SPARE_BYTES >> 20} MiB more must stay free; TMPDIR names another place"
        )
    if size >= REPORTED_FROM_BYTES:
        report(f"Copying {size >> 20} MiB of {database} to {place.parent} ...")


def _wal_header(wal: Path) -> bytes:
    try:
        with wal.open("rb") as file:
            return file.read(WAL_HEADER_BYTES)
    except FileNotFoundError:
        return b""
