"""Rows about a data directory that is read offline. Times are UTC in ISO 8601, except those of exported records."""

from __future__ import annotations

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """`broker` is running, or how the last run ended; bytes are those of files."""

    data_dir: str
    broker: str
    format: int
    cluster_id: str | None
    last_commit: int
    store_bytes: int
    wal_bytes: int
    segment_bytes: int
    topics: int
    partitions: int
    segments: int
    groups: int
    committed_offsets: int
    transactional_ids: int
    users: int
    acls: int


@dataclass(frozen=True, slots=True)
class StoreTopic:
    """`offsets` is how many offsets lie between log start and log end, of all partitions."""

    topic: str
    topic_id: str
    partitions: int
    internal: bool
    offsets: int
    segments: int
    size_bytes: int
    first_time: str | None
    last_time: str | None


@dataclass(frozen=True, slots=True)
class StorePartitionRow:
    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int
    segments: int
    size_bytes: int
    first_time: str | None
    last_time: str | None


@dataclass(frozen=True, slots=True)
class StoreSegmentRow:
    """`file` is relative to the data directory. `sealed`: nothing is appended any more."""

    topic: str
    partition: int
    base_offset: int
    end_offset: int
    size_bytes: int
    first_time: str | None
    last_time: str | None
    sealed: bool
    file: str


@dataclass(frozen=True, slots=True)
class StoreGroup:
    """A group as its last generation or epoch was stored; `type` is Classic, Consumer or Share, `state` Empty, or Stable if it had members.
    `offsets` counts committed offsets. The lag of a share group counts all records after its start offsets.
    """

    group: str
    type: str
    state: str
    members: int
    offsets: int
    lag: int
    last_commit: str | None
    generation: int | None
    protocol_type: str | None
    protocol: str | None
    leader: str | None


@dataclass(frozen=True, slots=True)
class StoreMember:
    """`assignment` has one entry per topic, such as orders:0,1. The timeouts of newer members are null if they are not stored."""

    group: str
    consumer_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    subscription: tuple[str, ...]
    assignment: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoreOffset:
    """`lag` is null if the partition does not exist."""

    group: str
    topic: str
    partition: int
    current_offset: int
    log_end_offset: int | None
    lag: int | None
    committed: str | None
    leader_epoch: int | None
    metadata: str


@dataclass(frozen=True, slots=True)
class StoreSharePartition:
    """Where a share group reads on. `start_offset` is null before it has read the partition, `lag` as well, or if there is none any more."""

    group: str
    topic: str
    partition: int
    start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    state_epoch: int


@dataclass(frozen=True, slots=True)
class StorePendingOffset:
    """An offset that a group commits when the transaction of this producer is committed."""

    group: str
    topic: str
    partition: int
    offset: int
    producer_id: int
    producer_epoch: int
    committed: str | None
    superseded: bool


@dataclass(frozen=True, slots=True)
class StoreTransaction:
    """`partitions` has one entry per topic, such as orders:0,1."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started: str | None
    updated: str | None
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoreProducer:
    """`transaction_offset` is where the open transaction begins."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    last_time: str | None
    coordinator_epoch: int | None
    transaction_offset: int | None


@dataclass(frozen=True, slots=True)
class StoreAbortedTransaction:
    topic: str
    partition: int
    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class StoreUser:
    """A SCRAM user and its mechanisms, without keys and salts."""

    user: str
    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class StoreAcl:
    principal: str
    host: str
    operation: str
    permission: str
    resource_type: str
    pattern_type: str
    resource: str


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """`entity` is topic, broker, group or another kind; the name of the broker's own is empty. Secrets are hidden."""

    entity: str
    name: str
    config: str
    value: str


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """An event of the history of a group. `details` is the whole event as JSON (see docs/group-events.md)."""

    offset: int
    time: str | None
    group: str
    event: str
    cause: str | None
    generation: int | None
    members: int | None
    details: str


@dataclass(frozen=True, slots=True)
class StoreRecord:
    """Encodings are text or base64, null without a key or value. `headers` is a JSON list of objects. `transaction`: committed, aborted, open."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: str | None
    key_encoding: str | None
    value: str | None
    value_encoding: str | None
    headers: str
    transaction: str | None


@dataclass(frozen=True, slots=True)
class StoreTable:
    """A table for `kgctl store query`."""

    table: str
    meaning: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What `kgctl store verify` checked."""

    part: str
    checked: int
    size_bytes: int
    damages: int


@dataclass(frozen=True, slots=True)
class StoreDamage:
    file: str
    place: str
    damage: str
