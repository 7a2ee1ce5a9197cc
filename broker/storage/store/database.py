"""The SQLite database: one connection, one transaction per flush, and evidence that no commit is lost.

Callers execute statements as they go; the first one opens a transaction and `commit` ends it. The first failure is
final for the process: see failure.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

import apsw
import google_crc32c

from broker.storage.errors import NewerFormatError, OutOfDescriptors, ReplacedError, StorageError, StoreDamageError
from broker.storage.failure import Failure
from broker.storage.files import Files, guarded
from broker.storage.store.checked_pages import HEADER_BYTES, PAGE_BYTES, RESERVED_BYTES, CheckedPages, stamp_in
from broker.storage.store.evidence import Evidence, stamp_of
from broker.storage.store.formats import APPLICATION_ID, FORMAT_VERSION, first_script, migrations
from broker.storage.store.values import Row, Value, as_int
from broker.storage.store.wal_frames import FRAME_HEADER_BYTES, WAL_HEADER_BYTES

WAL_CHECKPOINT_BYTES = 8 << 20
WAL_KEPT_BYTES = 64 << 20
# Overwriting zeros syncs faster than growing the file; not worth it for a run of a few commits.
WAL_EXTENT_BYTES = 1 << 20
WAL_EXTENDED_AFTER_COMMITS = 16
CACHE_KIB = 16384

_crc_extend = google_crc32c.extend


class Store:
    """The database of one data directory."""

    def __init__(self, files: Files, directory: str, failure: Failure, *, accept_loss: bool) -> None:
        self.path = os.path.join(directory, "store.db")
        self._wal_path = self.path + "-wal"
        self.evidence = Evidence(files, directory, self.path)
        self._files = files
        self._failure = failure
        self._in_transaction = False
        self.dirty = False  # the transaction holds changes that a flush must make durable
        self._digest = 0  # of the changes in the transaction
        self._wal_file_bytes = 0
        self._commits = 0
        self._closed = False
        self.wal_pages = 0  # in the WAL since its last checkpoint
        self._wal_header = b""  # with the salt of this WAL; empty: unknown
        self.is_new = False
        self._vfs = CheckedPages(files.ops)
        try:
            self._open(accept_loss)
        except StorageError:
            self._abandon()
            raise
        except apsw.Error as error:
            translated = self._translate(error)
            self._abandon()
            raise translated from error

    # -- opening

    def _open(self, accept_loss: bool) -> None:
        is_blank = not os.path.exists(self.path) or os.path.getsize(self.path) == 0
        if is_blank:
            self.evidence.check_new(accept_loss)
            if not os.path.exists(self.path):
                self._files.get(self.path, create=True)
                self._files.forget(self.path)
        else:
            self._check_wal(accept_loss)
        self._connect()
        self.is_new = self._one("SELECT count(*) FROM sqlite_master") == 0
        if self.is_new:
            if not is_blank:
                self.evidence.check_new(accept_loss)
            self._create()
        else:
            self._check_format()
            if accept_loss and self.evidence.is_newer_than_wal(as_int(self._one("SELECT max(seq) FROM commits") or 0)):
                self._disconnect()
                self._set_wal_aside()
                self._connect()
            self.evidence.check(self.query("SELECT seq, digest, chain FROM commits ORDER BY seq"), accept_loss)
            self._migrate()

    def _check_wal(self, accept_loss: bool) -> None:
        """SQLite binds a WAL to no database file, and an older copy below it makes a mixture of both."""
        wal, file = self._wal_path, self._files.get(self.path)
        self.evidence.checkpoint = stamp_in(file.read(HEADER_BYTES, 0))
        self._files.forget(self.path)
        if os.path.exists(wal) and os.path.getsize(wal) > 0 and self.evidence.is_older_than_wal(accept_loss):
            self._set_wal_aside()

    def _set_wal_aside(self) -> None:
        wal, files = self._wal_path, self._files
        guarded("rename", wal, files.ops.rename, wal, wal + ".damaged")
        files.sync_directory(os.path.dirname(self.path))

    def _connect(self) -> None:
        self._db = apsw.Connection(
            self.path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=self._vfs.vfs_name, statementcachesize=100
        )
        self._db.reserve_bytes("main", RESERVED_BYTES)
        for pragma in (
            f"page_size={PAGE_BYTES}",
            "locking_mode=EXCLUSIVE",
            "journal_mode=WAL",
            f"synchronous={'FULL' if self._files.durable else 'NORMAL'}",
            "fullfsync=ON",
            "checkpoint_fullfsync=ON",
            "wal_autocheckpoint=0",
            f"journal_size_limit={WAL_KEPT_BYTES}",
            "mmap_size=0",
            f"cache_size=-{CACHE_KIB}",
            "cell_size_check=ON",
            "trusted_schema=OFF",
            "temp_store=MEMORY",
        ):
            self._db.execute(f"PRAGMA {pragma}").fetchall()
        self._db.set_wal_hook(self._note_wal)

    def _check_format(self) -> None:
        application_id = self._one("PRAGMA application_id")
        if application_id != APPLICATION_ID:
            raise StorageError(f"{self.path} belongs to another program (application id {application_id!r})")
        version = self._one("PRAGMA user_version")
        if not isinstance(version, int) or version > FORMAT_VERSION:
            raise NewerFormatError(
                f"{self.path} has format {version!r}; this version of kgctl reads formats up to {FORMAT_VERSION}"
            )

    def _create(self) -> None:
        self.execute(f"PRAGMA application_id={APPLICATION_ID}")
        self.execute("PRAGMA user_version=1")
        self._db.execute(first_script())
        self._migrate()

    def _migrate(self) -> None:
        """Bring an older format up to date, as part of the first commit."""
        version = self._one("PRAGMA user_version")
        assert isinstance(version, int)
        for newer, script in migrations(version):
            self.execute(f"PRAGMA user_version={newer}")
            self._db.execute(script)

    def mark_open(self) -> None:
        """Make the next flush commit even without changes, so that each run leaves evidence of its durability."""
        self._begin()
        self.dirty = True

    # -- statements

    def execute(self, sql: str, values: Sequence[Value] = ()) -> None:
        """Run one changing statement inside the transaction of the next flush."""
        self._begin()
        self.dirty = True
        self.mix(repr((sql, values)).encode())
        try:
            self._db.execute(sql, values)
        except apsw.Error as error:
            raise self._fail(error) from error

    def execute_many(self, sql: str, rows: Sequence[Sequence[Value]], *, mixed: bool = False) -> None:
        """Run one changing statement for each row. `mixed`: the caller has passed a digest of the rows to `mix`."""
        self._begin()
        self.dirty = True
        if not mixed:
            self.mix(repr((sql, rows)).encode())
        try:
            self._db.executemany(sql, rows)
        except apsw.Error as error:
            raise self._fail(error) from error

    def derive(self, sql: str, values: Sequence[Value] = ()) -> None:
        """Run a changing statement that can be run again: it waits for a commit that something else needs."""
        self._begin()
        try:
            self._db.execute(sql, values)
        except apsw.Error as error:
            raise self._fail(error) from error

    def derive_many(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        """Like `derive`, once for each row."""
        self._begin()
        try:
            self._db.executemany(sql, rows)
        except apsw.Error as error:
            raise self._fail(error) from error

    def query(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        try:
            rows: list[Row] = self._db.execute(sql, values).fetchall()
        except apsw.Error as error:
            raise self._translate(error) from error
        return rows

    def iterate(self, sql: str, values: Sequence[Value] = ()) -> Iterator[Row]:
        """Rows one by one. Read all of them before the next change."""
        try:
            yield from self._db.execute(sql, values)
        except apsw.Error as error:
            raise self._translate(error) from error

    def _one(self, sql: str, values: Sequence[Value] = ()) -> Value:
        rows = self.query(sql, values)
        return rows[0][0] if rows else None

    def meta(self, name: str) -> str | None:
        value = self._one("SELECT value FROM meta WHERE name = ?", (name,))
        return value if isinstance(value, str) else None

    def set_meta(self, name: str, value: str) -> None:
        self.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (name, value))

    def mix(self, content: bytes) -> None:
        """Add these bytes to the digest of the open transaction."""
        self._digest = _crc_extend(self._digest, content)

    # -- transactions

    def _begin(self) -> None:
        self._failure.check()
        if not self._in_transaction:
            try:
                self._db.execute("BEGIN IMMEDIATE")
            except apsw.Error as error:
                raise self._fail(error) from error
            self._in_transaction = True

    def commit(self) -> None:
        """Commit the transaction if it is dirty. Its changes are durable on return (durability "power": synced)."""
        self._failure.check()
        if not self.dirty:
            return
        seq, chain = self.evidence.next_commit(self._digest)
        try:
            self._db.execute("INSERT INTO commits VALUES (?, ?, ?)", (seq, self._digest, chain))
            self._db.execute("COMMIT")
        except apsw.Error as error:
            raise self._fail(error) from error
        self._in_transaction = self.dirty = False
        self._digest = 0
        self._commits += 1
        if not self._wal_header:
            # Without a descriptor to spare, the next commit does it.
            with suppress(OutOfDescriptors):
                self._wal_header = self._read_wal()[0]
        try:
            self.evidence.committed(seq, chain)
            if self._files.durable and self._commits > WAL_EXTENDED_AFTER_COMMITS:
                self._extend_wal()
        except StorageError as error:
            self._failure.remember(error)
            raise

    # -- the WAL

    def _note_wal(self, _db: object, _name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def _extend_wal(self) -> None:
        """Keep zeros ahead of the frames; SQLite reads zeros as the end of the WAL."""
        used = self._wal_used()
        if used + WAL_EXTENT_BYTES // 4 <= self._wal_file_bytes:
            return
        path = self._wal_path
        try:
            file = self._files.get(path)
        except OutOfDescriptors:
            return
        self._wal_file_bytes = max(file.size(), used)
        if used + WAL_EXTENT_BYTES // 4 > self._wal_file_bytes:
            file.write(bytes(WAL_EXTENT_BYTES), self._wal_file_bytes)
            self._wal_file_bytes += WAL_EXTENT_BYTES
        self._files.forget(path)

    @property
    def wal_is_large(self) -> bool:
        return self.wal_pages * PAGE_BYTES >= WAL_CHECKPOINT_BYTES

    def checkpoint(self, *, truncate: bool = False) -> None:
        """Move the WAL into the database file. This ends the transaction, so nothing in it may wait for a flush."""
        self._check_files_in_use()
        self.evidence.sync()
        self.execute("DELETE FROM commits WHERE seq < ?", (self.evidence.seq,))
        # Every checkpoint must write the first page, which holds the stamp.
        self.execute(f"PRAGMA application_id={APPLICATION_ID}")
        self.commit()
        self._vfs.stamp = stamp_of(self.evidence.seq)
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_RESTART
        try:
            self._db.wal_checkpoint("main", mode)
        except apsw.Error as error:
            raise self._fail(error) from error
        self.evidence.checkpointed(self._vfs.stamp)
        self.wal_pages = 0
        self._wal_header = b""

    def _check_files_in_use(self) -> None:
        """A checkpoint with a database or a WAL that was written over would make a mixture of both."""
        replaced = None
        if self._vfs.main.stamp() != self.evidence.checkpoint:
            replaced = self.path
        elif self._wal_header and self._is_wal_replaced():
            replaced = self._wal_path
        if replaced is not None:
            error = ReplacedError(f"{replaced} was replaced while the broker ran")
            self._failure.remember(error)
            raise error

    def _is_wal_replaced(self) -> bool:
        try:
            header, size = self._read_wal()
        except OutOfDescriptors:
            # A stop must not fail for want of a descriptor.
            return False
        return header != self._wal_header or size < self._wal_used()

    def _read_wal(self) -> tuple[bytes, int]:
        """The header of the WAL, and the size of the file."""
        path = self._wal_path
        file = self._files.get(path)
        found = file.read(WAL_HEADER_BYTES, 0), file.size()
        self._files.forget(path)
        return found

    def _wal_used(self) -> int:
        return self.wal_pages * (PAGE_BYTES + FRAME_HEADER_BYTES) + WAL_HEADER_BYTES

    # -- closing and failures

    def close(self, *, clean: bool = True) -> None:
        """Without `clean`: leave the files as kill -9 would. Closing again does nothing."""
        if self._closed:
            return
        try:
            if clean and self._failure.cause is None:
                self.commit()
                self.checkpoint(truncate=True)
                self.evidence.sync()
        finally:
            self._abandon()

    def _abandon(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._disconnect()
        self._vfs.unregister()

    def _disconnect(self) -> None:
        """Close the connection and leave the files as they are."""
        db: apsw.Connection | None = getattr(self, "_db", None)
        if db is not None:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            with suppress(apsw.Error):
                db.close(True)

    def _fail(self, error: apsw.Error) -> StorageError:
        translated = self._translate(error)
        self._failure.remember(translated)
        return translated

    def _translate(self, error: apsw.Error) -> StorageError:
        if self._vfs.failure is not None:
            return self._vfs.failure
        if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
            return StoreDamageError(f"{self.path} is damaged: {error}")
        if isinstance(error, apsw.BusyError):
            return StorageError(f"{self.path} is in use by another process")
        return StorageError(f"{self.path}: {error}")
