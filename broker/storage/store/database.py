"""The SQLite store: one connection, one transaction per round, and the evidence that no commit has gone missing.

Callers execute statements as they go; the first one opens a transaction and `commit` ends it. A failure of any
kind is final for the process: see StorageError.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import apsw
import google_crc32c

from broker.storage.digests import blake2b
from broker.storage.errors import DamageError, NewerFormatError, StorageError, StoreDamageError
from broker.storage.failure import Failure
from broker.storage.files import Files
from broker.storage.store.checked_pages import PAGE_BYTES, RESERVED_BYTES, CheckedPages
from broker.storage.store.commit_marker import Watermark, WatermarkFile, boot_id

APPLICATION_ID = 0x6B67636C  # "kgcl"
FORMAT_VERSION = 3
# By format: what turns the one before into it.
_ADDED = {2: "schema_2.sql", 3: "schema_3.sql"}
WATERMARK_SYNC_SECONDS = 1.0
WAL_CHECKPOINT_BYTES = 8 << 20
WAL_KEPT_BYTES = 64 << 20
# Overwriting zeros syncs faster than growing the file; not worth it for a run of a few commits.
WAL_EXTENT_BYTES = 1 << 20
WAL_EXTENDED_AFTER_COMMITS = 16
CACHE_KIB = 16384

Value = int | str | bytes | float | None
Row = tuple[Value, ...]

_crc_extend = google_crc32c.extend
_CHAIN_INPUT = struct.Struct(">16sqI")


class Store:
    """`seq` is the sequence number of the last commit; it grows by one with each, and skips one after a crash."""

    def __init__(self, files: Files, directory: str, failure: Failure, *, accept_loss: bool) -> None:
        self.path = os.path.join(directory, "store.db")
        self._files = files
        self._watermark = WatermarkFile(files, os.path.join(directory, "watermark"))
        self._boot_id = boot_id()
        self._watermark_synced_at = time.monotonic()
        self._watermark_unsynced = False
        self._in_transaction = False
        self._is_owed = False  # the transaction holds more than what can be derived again
        self._wal_file_bytes = 0
        self._commits = 0
        self._closed = False
        self._digest = 0
        self.seq = 0
        self._chain = bytes(16)
        self.wal_pages = 0  # in the WAL since the last checkpoint
        self._failure = failure
        self.losses: list[str] = []
        self.binding = True  # evidence beside the store must be met; not after a power cut with durability "process"
        self.was_synced = True  # the last run acknowledged after a sync
        self.is_new = False
        self._vfs = CheckedPages(files.ops.sqlite_vfs)
        try:
            self._open(accept_loss)
        except StorageError:
            self._abandon()
            raise
        except apsw.Error as error:
            translated = self._translate(error)
            self._abandon()
            raise translated from error

    def _open(self, accept_loss: bool) -> None:
        is_blank = not os.path.exists(self.path) or os.path.getsize(self.path) == 0
        if is_blank:
            self._check_birth(accept_loss)
        self._db = apsw.Connection(
            self.path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=self._vfs.vfs_name, statementcachesize=100
        )
        run = self._db.execute
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
            run(f"PRAGMA {pragma}").fetchall()
        self._db.set_wal_hook(self._note_wal)
        self.is_new = self._one("SELECT count(*) FROM sqlite_master") == 0
        if self.is_new:
            if not is_blank:
                self._check_birth(accept_loss)
            self._create()
        else:
            self._check_format()
            self._check_evidence(accept_loss)
            self._migrate()

    def _check_birth(self, accept_loss: bool) -> None:
        """An empty database is right only as long as no commit was ever acknowledged."""
        mark = self._watermark.read() if self._watermark.exists else None
        if mark is not None and mark.commit_seq > 0:
            self._bind(mark)
            message = f"{self.path} is empty or missing; it held {mark.commit_seq} commits"
            self.lose(message, accept_loss or not self.binding)
            self.seq = mark.commit_seq
        if mark is None:
            # From here on a store without a watermark is one that has lost it.
            self._watermark.write(Watermark(0, bytes(16), self._files.durable, self._boot_id))
            self._watermark.exists = True
            if self._files.durable:
                self._watermark.sync()
        if not os.path.exists(self.path):
            self._files.get(self.path, create=True)
            self._files.forget(self.path)

    def _check_format(self) -> None:
        application_id = self._one("PRAGMA application_id")
        if application_id != APPLICATION_ID:
            raise StorageError(f"{self.path} belongs to another program (application id {application_id!r})")
        version = self._one("PRAGMA user_version")
        if not isinstance(version, int) or version > FORMAT_VERSION:
            raise NewerFormatError(f"{self.path} has format {version!r}; this version of kgctl knows {FORMAT_VERSION}")

    def _create(self) -> None:
        self.execute(f"PRAGMA application_id={APPLICATION_ID}")
        self.execute("PRAGMA user_version=1")
        self._run_script("schema.sql")
        self._migrate()

    def _migrate(self) -> None:
        """Bring an older format up to date, as part of the first commit."""
        version = self._one("PRAGMA user_version")
        assert isinstance(version, int)
        for newer in range(version + 1, FORMAT_VERSION + 1):
            self.execute(f"PRAGMA user_version={newer}")
            self._run_script(_ADDED[newer])

    def _run_script(self, name: str) -> None:
        self._db.execute(Path(__file__).with_name(name).read_text())

    def _check_evidence(self, accept_loss: bool) -> None:
        commits = self.query("SELECT seq, digest, chain FROM commits ORDER BY seq")
        if not commits:
            raise StoreDamageError(f"{self.path}: the commit sequence is gone")
        chains: dict[int, bytes] = {}
        for seq, digest, chain in commits:
            if not (isinstance(seq, int) and isinstance(digest, int) and isinstance(chain, bytes)):
                raise StoreDamageError(f"{self.path}: a row of the commit sequence is damaged")
            if chains and chain != _link(self._chain, seq, digest):
                raise StoreDamageError(f"{self.path}: the hash chain breaks at commit {seq}")
            self.seq, self._chain = seq, chain
            chains[seq] = chain
        mark = self._watermark.read()
        if mark is None:
            self.lose(f"{self._watermark.path} is missing or damaged: lost commits cannot be ruled out", accept_loss)
        else:
            self._bind(mark)
            if mark.commit_seq > self.seq:
                self.lose(
                    f"{self.path}: acknowledged commits {self.seq + 1} to {mark.commit_seq} are gone "
                    f"(damaged or cut: store.db-wal or store.db)",
                    accept_loss or not self.binding,
                )
            elif mark.chain != chains.get(mark.commit_seq, mark.chain):
                self.lose(f"{self.path} and {self._watermark.path} are not of the same history", accept_loss)
            self.seq = max(self.seq, mark.commit_seq)
        # A commit that failed before a crash may be here or not: its number is not given to another.
        self.seq += 1

    def _bind(self, mark: Watermark) -> None:
        self.was_synced = mark.synced
        self.binding = mark.synced or (mark.boot_id == self._boot_id and mark.boot_id != b"")

    def mark_open(self) -> None:
        """Let the first commit of this run leave the evidence of its durability."""
        self._begin()
        self._is_owed = True

    def lose(self, message: str, accepted: bool) -> None:
        """Note a loss that may be gone on with; else DamageError."""
        if not accepted:
            raise DamageError(message)
        self.losses.append(message)

    # -- statements

    def execute(self, sql: str, values: Sequence[Value] = ()) -> None:
        """Run one changing statement inside the transaction of this round."""
        self._begin()
        self._is_owed = True
        self.mix(repr((sql, values)).encode())
        try:
            self._db.execute(sql, values)
        except apsw.Error as error:
            raise self._fail(error) from error

    def execute_many(self, sql: str, rows: Sequence[Sequence[Value]], *, mixed: bool = False) -> None:
        """Run one changing statement for each row. `mixed`: the caller has given the digest of the rows to `mix`."""
        self._begin()
        self._is_owed = True
        if not mixed:
            self.mix(repr((sql, rows)).encode())
        try:
            self._db.executemany(sql, rows)
        except apsw.Error as error:
            raise self._fail(error) from error

    def derive(self, sql: str, values: Sequence[Value] = ()) -> None:
        """Run a changing statement whose effect can be derived again: it waits for a commit that others need."""
        self._begin()
        try:
            self._db.execute(sql, values)
        except apsw.Error as error:
            raise self._fail(error) from error

    def derive_many(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        """The same for each row."""
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
        """Rows one by one; to be used up before the next change."""
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
        """Let these bytes count in the hash chain of the open commit."""
        self._digest = _crc_extend(self._digest, content)

    # -- rounds

    @property
    def dirty(self) -> bool:
        """Something is owed to a caller."""
        return self._is_owed

    def _begin(self) -> None:
        self._failure.check()
        if not self._in_transaction:
            try:
                self._db.execute("BEGIN IMMEDIATE")
            except apsw.Error as error:
                raise self._fail(error) from error
            self._in_transaction = True

    def commit(self) -> None:
        """End the transaction, if anything is owed: durable when this returns (durability "power": synced)."""
        self._failure.check()
        if not self._is_owed:
            return
        seq, digest = self.seq + 1, self._digest
        chain = _link(self._chain, seq, digest)
        try:
            self._db.execute("INSERT INTO commits VALUES (?, ?, ?)", (seq, digest, chain))
            self._db.execute("COMMIT")
        except apsw.Error as error:
            raise self._fail(error) from error
        self._in_transaction = self._is_owed = False
        self._digest = 0
        self.seq, self._chain = seq, chain
        self._write_watermark()
        self._commits += 1
        if self._files.durable and self._commits > WAL_EXTENDED_AFTER_COMMITS:
            self._extend_wal()

    def _write_watermark(self) -> None:
        try:
            self._watermark.write(Watermark(self.seq, self._chain, self._files.durable, self._boot_id))
            self._watermark_unsynced = True
            if time.monotonic() - self._watermark_synced_at >= WATERMARK_SYNC_SECONDS:
                self.sync_watermark()
        except StorageError as error:
            self._failure.remember(error)
            raise

    def sync_watermark(self) -> None:
        self._watermark_synced_at = time.monotonic()
        if self._watermark_unsynced and self._files.durable:
            self._watermark.sync()
        self._watermark_unsynced = False

    def _note_wal(self, _db: object, _name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def _extend_wal(self) -> None:
        """Keep zeros ahead of the frames. SQLite takes them for the end of the WAL, as they are."""
        used = self.wal_pages * (PAGE_BYTES + 24) + 32
        if used + WAL_EXTENT_BYTES // 4 <= self._wal_file_bytes:
            return
        path = self.path + "-wal"
        try:
            file = self._files.get(path)
            self._wal_file_bytes = max(file.size(), used)
            if used + WAL_EXTENT_BYTES // 4 > self._wal_file_bytes:
                file.write(bytes(WAL_EXTENT_BYTES), self._wal_file_bytes)
                self._wal_file_bytes += WAL_EXTENT_BYTES
            self._files.forget(path)
        except StorageError as error:
            self._failure.remember(error)
            raise

    @property
    def wal_is_large(self) -> bool:
        return self.wal_pages * PAGE_BYTES >= WAL_CHECKPOINT_BYTES

    def checkpoint(self, *, truncate: bool = False) -> None:
        """Move the WAL into the database file. Called between rounds."""
        try:
            self.sync_watermark()
            self.execute("DELETE FROM commits WHERE seq < ?", (self.seq,))
            self.commit()
            mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_RESTART
            self._db.wal_checkpoint("main", mode)
            self.wal_pages = 0
        except apsw.Error as error:
            raise self._fail(error) from error

    def close(self, *, clean: bool = True) -> None:
        """`clean` false: as kill -9 would leave it. Closing once more does nothing."""
        if self._closed:
            return
        try:
            if not clean or self._failure.cause is not None:
                return
            self.commit()
            self.checkpoint(truncate=True)
            if self._files.durable:
                self._watermark.sync()
        finally:
            self._abandon()

    def _abandon(self) -> None:
        if self._closed:
            return
        self._closed = True
        db: apsw.Connection | None = getattr(self, "_db", None)
        if db is not None:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            with suppress(apsw.Error):
                db.close(True)
        self._vfs.unregister()

    # -- failures

    def _fail(self, error: apsw.Error) -> StorageError:
        translated = self._translate(error)
        self._failure.remember(translated)
        return translated

    def _translate(self, error: apsw.Error) -> StorageError:
        if self._vfs.damage is not None:
            return self._vfs.damage
        if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
            return StoreDamageError(f"{self.path} is damaged: {error}")
        if isinstance(error, apsw.BusyError):
            return StorageError(f"{self.path} is in use by another process")
        return StorageError(f"{self.path}: {error}")


def as_int(value: Value) -> int:
    assert isinstance(value, int)
    return value


def as_bytes(value: Value) -> bytes:
    assert isinstance(value, bytes)
    return value


def as_text(value: Value) -> str:
    assert isinstance(value, str)
    return value


def _link(chain: bytes, seq: int, digest: int) -> bytes:
    return blake2b(_CHAIN_INPUT.pack(chain, seq, digest), digest_size=16).digest()
