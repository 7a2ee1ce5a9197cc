"""What can still be read from the store: topics, configs, numbers of partitions, committed offsets, and a few counters."""

from __future__ import annotations

from pathlib import Path

from broker.light_named_tuples import NamedTuple
from broker.protocol.offsets_topic import OffsetCommitKey, decode_key, decode_offset_value
from broker.protocol.wire_types import DecodeError
from broker.storage.rescue.cells import Cell, cells, possible_rows
from broker.storage.rescue.stored_pages import Page, StoredPages
from broker.storage.rows.topic_row import row_crc
from broker.storage.store.values import Value
from broker.storage.topic_configs import TOPIC_CONFIGS

OFFSETS_COLUMNS = 7  # of the table offsets_log
FROM_DAMAGED_PAGE = "from a damaged page: check it"
FROM_OLDER_PAGE = "from an older copy of a damaged page: a newer commit may be lost"
_BROKER_CONFIGS = {config.synonym for config in TOPIC_CONFIGS.values() if config.synonym is not None}


class StoredTopic(NamedTuple):
    name: str
    topic_id: bytes
    partition_count: int
    internal: bool


class StoredPartition(NamedTuple):
    topic_id: bytes
    partition: int
    log_start_offset: int


class SecurityRecord(NamedTuple):
    kind: str
    name: str
    value: str


class CommittedOffset(NamedTuple):
    """A committed offset and the time of its commit. `note` says why it may not be the newest one."""

    group: str
    topic: str
    partition: int
    offset: int
    committed_ms: int
    note: str | None


class _OffsetRow(NamedTuple):
    log_offset: int  # in __consumer_offsets: the newest row of a key has the largest
    value: bytes | None
    note: str | None


class Salvage:
    """Rows that are proven: by the checksum of their page or frame, or by their own."""

    def __init__(self, directory: Path) -> None:
        self._pages = pages = StoredPages(directory)
        self.problems = pages.problems
        self.is_complete = pages.is_complete
        self.topics: dict[bytes, StoredTopic] = {}
        self.topic_configs: dict[bytes, dict[str, str]] = {}
        self.broker_configs: dict[str, str] = {}
        self.security_records: list[SecurityRecord] = []
        self.meta: dict[str, str] = {}
        self.partitions: dict[int, StoredPartition] = {}
        self.segments: dict[int, list[tuple[int, int]]] = {}  # by partition number: base and end offsets
        self.largest_producer_id = -1
        self.last_commit = 0
        self.deleted_topics: set[bytes] = set()  # their directories may still be there
        self.unreadable_rows = 0
        self._offsets: dict[OffsetCommitKey, _OffsetRow] = {}
        # Rows of older copies first: those of current pages replace them.
        for page in sorted(pages, key=lambda page: not page.outdated):
            self._read(page)

    @property
    def offsets(self) -> list[CommittedOffset]:
        """The newest committed offset of each partition of each group that is still readable."""
        found = []
        for key, row in sorted(self._offsets.items()):
            if row.value is None:
                continue
            try:
                value = decode_offset_value(row.value)
            except DecodeError:
                continue
            found.append(CommittedOffset(*key, value.offset, value.commit_timestamp, row.note))
        return found

    def _read(self, page: Page) -> None:
        if page.intact:
            if self._pages.free is not None and page.number in self._pages.free:
                return
            note = FROM_OLDER_PAGE if page.outdated else None
            for cell in cells(page.number, page.content, self._pages.content):
                if cell is None:
                    self.unreadable_rows += 1
                elif not self._note_offset(cell.values, note):
                    self._note_other(cell)
                    if note is None:
                        self._note_segment(cell)
                        self._note_security(cell)
        elif page.content.strip(b"\0"):
            for values in possible_rows(page.content, OFFSETS_COLUMNS, self._pages.content):
                self._note_offset(values, FROM_DAMAGED_PAGE)

    def _note_offset(self, values: tuple[Value, ...], note: str | None) -> bool:
        """Keep a row of __consumer_offsets if it is a newer offset of its key."""
        if len(values) != OFFSETS_COLUMNS:
            return False
        _, partition, log_offset, key, value, timestamp_ms, crc = values
        if not (
            isinstance(partition, int)
            and isinstance(log_offset, int)
            and isinstance(key, bytes)
            and (value is None or isinstance(value, bytes))
            and isinstance(timestamp_ms, int)
            and -(2**31) <= partition < 2**31
            and row_crc(partition, log_offset, key, value, timestamp_ms) == crc
        ):
            return False
        try:
            decoded = decode_key(key)
        except DecodeError:
            return True
        if isinstance(decoded, OffsetCommitKey):
            known = self._offsets.get(decoded)
            if known is None or (known.log_offset, known.note is None) < (log_offset, note is None):
                self._offsets[decoded] = _OffsetRow(log_offset, value, note)
        return True

    def _note_other(self, cell: Cell) -> None:
        """Keep a row of another table, which its columns identify. Its page is intact."""
        match cell:
            case Cell(int(number), (None, bytes(topic_id), int(index), int(log_start), int(), *_)) if _is_id(topic_id):
                self.partitions[number] = StoredPartition(topic_id, index, log_start)
            case Cell(None, (bytes(topic_id), str(name), int(count), int(internal))) if _is_id(topic_id):
                self.topics[topic_id] = StoredTopic(name, topic_id, count, bool(internal))
            case Cell(None, (bytes(topic_id), str(name), str(value))) if _is_id(topic_id) and name in TOPIC_CONFIGS:
                self.topic_configs.setdefault(topic_id, {})[name] = value
            case Cell(int(seq), (None, int(), bytes(chain))) if _is_id(chain):
                self.last_commit = max(self.last_commit, seq)
            case Cell(None, (str(path), "deleted")) if len(path) == 32:
                self.deleted_topics.add(bytes.fromhex(path))
            case Cell(None, (str(name), str(value))):
                (self.broker_configs if name in _BROKER_CONFIGS else self.meta)[name] = value
            case Cell(None, (int(), int(producer_id), int(), int(), bytes(), *_)):
                self.largest_producer_id = max(self.largest_producer_id, producer_id)

    def _note_security(self, cell: Cell) -> None:
        """Keep a record of a current page: an older copy may hold rights that were revoked."""
        match cell:
            case Cell(None, (str(kind), str(name), str(value))):
                self.security_records.append(SecurityRecord(kind, name, value))

    def _note_segment(self, cell: Cell) -> None:
        match cell:
            case Cell(None, (int(number), int(base), int(), int(end), int(), int(), int(), int(), int(), *_)):
                self.segments.setdefault(number, []).append((base, end))


def _is_id(topic_id: bytes) -> bool:
    return len(topic_id) == 16
