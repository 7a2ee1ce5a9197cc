"""The evidence that no acknowledged commit is lost: a hash chain in the table commits, and the commit marker beside it.

SQLite itself does not detect damage in the middle of a WAL: it opens the database without the later commits.
"""

from __future__ import annotations

import logging
import os
import struct
import time

from broker.storage.digests import blake2b
from broker.storage.errors import DamageError, StoreDamageError, StoreMissingError
from broker.storage.files import Files
from broker.storage.store.commit_marker import CommitMarker, CommitMarkerFile, boot_id
from broker.storage.store.values import Row

logger = logging.getLogger(__name__)

MARKER_SYNC_SECONDS = 1.0
# What only the database holds: records are in the segments.
LOST_WITH_COMMITS = "committed offsets and changes of topics, users and ACLs may be missing"

STAMPS = 1 << 32

_CHAIN_INPUT = struct.Struct(">16sqI")


class Evidence:
    """`seq` is the number of the last commit. It grows by one with each commit, and skips one at each start."""

    def __init__(self, files: Files, directory: str, store_path: str) -> None:
        self._files = files
        self._store_path = store_path
        self._segments = os.path.join(directory, "segments")
        self._marker = CommitMarkerFile(files, directory)
        self._boot_id = boot_id() if files.ops.boot_id is None else files.ops.boot_id
        self._synced_at = time.monotonic()
        self._unsynced = False
        self.seq = 0
        self._chain = bytes(16)
        self.losses: list[str] = []
        self.lost_commits = False
        self.binding = True  # evidence must be met; not after a power cut with durability "process"
        self.was_synced = True  # the last run acknowledged after a sync
        self.is_same_boot = False  # no power cut since the last acknowledgement
        self.stored_seq = 0  # the last commit that the database held at the start
        self.last_commit = 0  # in the database
        self.ends_epoch = 0  # of synced-ends when it was last synced
        self.checkpoint = 0  # the stamp of the database file
        self._last: CommitMarker | None = None

    # -- at the start

    def check_new(self, accept_loss: bool) -> None:
        """An empty or missing database is right only if no commit was ever acknowledged."""
        marker = self._marker.read()
        if marker is not None:
            self._bind(marker)
        topics = _topic_directories(self._segments)
        commits = f"; it held {marker.commit_seq} commits" if marker is not None and marker.commit_seq else ""
        beside = f"; {self._segments} has the files of {topics} topics" if topics else ""
        if commits or beside:
            self.lose_commits(
                f"{self._store_path} is empty or missing{commits}{beside}; consumer groups, committed offsets, users and ACLs are lost",
                accept_loss or not self.binding,
                StoreMissingError if beside else DamageError,
            )
        elif marker is None and self._marker.is_damaged:
            self.lose(f"{self._store_path} is empty or missing, and {self._marker.path} is damaged", accept_loss)
        if marker is not None:
            self.seq = marker.commit_seq
        else:
            # From here on a database without a marker has lost it.
            self._last = CommitMarker(0, bytes(16), self._files.durable, self._boot_id)
            self._marker.create(self._last)

    def is_older_than_wal(self, accept_loss: bool) -> bool:
        """Whether the database file is an older copy: its WAL then belongs to another file."""
        marker = self._marker.read()
        if marker is None or marker.checkpoint == 0 or (marker.checkpoint - self.checkpoint) % STAMPS >= STAMPS // 2:
            return False
        self._bind(marker)
        is_older = marker.checkpoint != self.checkpoint
        if is_older:
            self.lose_commits(
                f"{self._store_path} is older than {self._store_path}-wal: acknowledged commits are lost",
                accept_loss or not self.binding,
            )
        return is_older

    def is_newer_than_wal(self, last_seq: int) -> bool:
        """Whether the WAL is an older copy: what it shows ends with this commit, before the last checkpoint."""
        return 0 < (self.checkpoint - stamp_of(last_seq)) % STAMPS < STAMPS // 2 and self.checkpoint != 0

    def check(self, commits: list[Row], accept_loss: bool) -> None:
        """Compare the rows (seq, digest, chain) of the table commits with each other and with the marker."""
        if not commits:
            raise StoreDamageError(f"{self._store_path}: the commit sequence is missing")
        chains: dict[int, bytes] = {}
        for seq, digest, chain in commits:
            if not (isinstance(seq, int) and isinstance(digest, int) and isinstance(chain, bytes)):
                raise StoreDamageError(f"{self._store_path}: a row of the commit sequence is damaged")
            if chains and chain != link(self._chain, seq, digest):
                raise StoreDamageError(f"{self._store_path}: the hash chain breaks at commit {seq}")
            self.seq, self._chain = seq, chain
            chains[seq] = chain
        self.stored_seq = self.last_commit = self.seq
        marker = self._marker.read()
        if marker is None:
            self.lose(f"{self._marker.path} is missing or damaged: lost commits cannot be ruled out", accept_loss)
        else:
            self._bind(marker)
            if marker.commit_seq > self.seq:
                self.lose_commits(
                    f"{self._store_path}: acknowledged commits {self.seq + 1} to {marker.commit_seq} are lost"
                    f" (store.db-wal or store.db is damaged or truncated); {LOST_WITH_COMMITS}",
                    accept_loss or not self.binding,
                )
            elif marker.chain != chains.get(marker.commit_seq, marker.chain):
                self.lose_commits(f"{self._store_path} and {self._marker.path} do not share one history", accept_loss)
            elif self.is_same_boot and len([seq for seq in chains if seq > marker.commit_seq]) > 1:
                # A killed run leaves a marker that misses the last commit at most.
                self.lose(
                    f"{self._marker.path} is older than {self._store_path}: lost commits cannot be ruled out",
                    accept_loss,
                )
            self.seq = max(self.seq, marker.commit_seq)
        # A commit that failed before a crash may be here or not. Its number is never given to another.
        self.seq += 1

    def _bind(self, marker: CommitMarker) -> None:
        self._last = marker
        self.was_synced = marker.synced
        self.ends_epoch = marker.ends_epoch
        self.is_same_boot = marker.boot_id == self._boot_id != b""
        self.binding = marker.synced or self.is_same_boot

    def lose(self, message: str, accepted: bool, error: type[DamageError] = DamageError) -> None:
        """Note a loss that was accepted; raise an error for one that was not."""
        if not accepted:
            raise error(message)
        # At once: a start that is killed after the next commit does not find the loss again.
        logger.warning("loss accepted: %s", message)
        self.losses.append(message)

    def lose_commits(self, message: str, accepted: bool, error: type[DamageError] = DamageError) -> None:
        """Like `lose`: the database is older than it should be, so rows of topics and partitions may be missing."""
        self.lose(message, accepted, error)
        self.lost_commits = True

    # -- at each commit

    def skip_to(self, seq: int) -> None:
        """Commits up to `seq` were acknowledged: no other commit gets their numbers."""
        self.seq = max(self.seq, seq + 1)

    def begin(self) -> None:
        """All checks passed: from here on the start may change the directory."""
        self._marker.adopt_older()
        marker = self._last
        if marker is None:
            return
        begun, is_weaker = marker, marker.synced and not self._files.durable
        if marker.commit_seq < self.stored_seq:
            # At the next start, more than one newer commit is evidence of damage.
            begun = begun._replace(commit_seq=self.stored_seq, chain=self._chain)
        if is_weaker:
            begun = begun._replace(synced=False, boot_id=self._boot_id)
        if begun != marker:
            self._write(begun)
        if is_weaker:
            # Before anything else that a power cut may lose: this run does not promise what the last one did.
            self._marker.sync()

    def ends_synced(self, epoch: int) -> None:
        """A sync of synced-ends began this epoch: an older file is one that lost records."""
        self.ends_epoch = epoch
        if self._last is not None:
            self._write(self._last._replace(ends_epoch=epoch))
            self._unsynced = True

    def end(self) -> None:
        """The start is complete: what it left is binding for the next one."""
        if not self.binding and self._last is not None:
            self.binding = True
            self._write(self._last._replace(synced=self._files.durable, boot_id=self._boot_id))
            self._unsynced = True

    def next_commit(self, digest: int) -> tuple[int, bytes]:
        """The number and the chain of a commit with this digest of its changes."""
        seq = self.seq + 1
        return seq, link(self._chain, seq, digest)

    def committed(self, seq: int, chain: bytes) -> None:
        """The commit is in the database: write the marker."""
        self.seq = self.last_commit = seq
        self._chain = chain
        synced, written_at_boot = self._files.durable, self._boot_id
        if not self.binding and self._last is not None:
            # If this start is killed, the next one still has to accept what a power cut left.
            synced, written_at_boot = False, self._last.boot_id
        self._write(CommitMarker(seq, chain, synced, written_at_boot, self.ends_epoch, self.checkpoint))
        self._unsynced = True
        if time.monotonic() - self._synced_at >= MARKER_SYNC_SECONDS:
            self.sync()

    def checkpointed(self, stamp: int) -> None:
        """The database file holds all commits so far, and this stamp: one with an older stamp is an older copy."""
        self.checkpoint = stamp
        if self._last is not None:
            self._write(self._last._replace(checkpoint=stamp))
            self._unsynced = True

    def _write(self, marker: CommitMarker) -> None:
        self._marker.write(marker)
        self._last = marker

    def sync(self) -> None:
        """Sync the marker if it was written since the last sync."""
        self._synced_at = time.monotonic()
        if self._unsynced and self._files.durable:
            self._marker.sync()
        self._unsynced = False


def _topic_directories(segments: str) -> int:
    """How many directories may hold records: not those that were set aside or wait for removal."""
    if not os.path.isdir(segments):
        return 0
    return len([name for name in os.listdir(segments) if not name.endswith((".damaged", ".deleted"))])


def stamp_of(seq: int) -> int:
    """The stamp of a checkpoint after this commit: 32 bits, never 0."""
    return seq % STAMPS or 1


def link(chain: bytes, seq: int, digest: int) -> bytes:
    return blake2b(_CHAIN_INPUT.pack(chain, seq, digest), digest_size=16).digest()
