-- The store of one broker, format 1. schema_N.sql turns format N - 1 into format N; see FORMAT_VERSION in database.py.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,  -- cluster_id, next_producer_id, next_partition_id, settled_seq, compacted_seq, compacted_rows (also with the prefix transactions_), group_events_start, groups_indexed
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per commit since the last WAL checkpoint: chain = hash(chain of the previous commit, seq, digest of the changes).
CREATE TABLE commits (
    seq    INTEGER PRIMARY KEY,
    digest INTEGER NOT NULL,
    chain  BLOB NOT NULL
) STRICT;

CREATE TABLE topics (
    topic_id        BLOB PRIMARY KEY,
    name            TEXT NOT NULL UNIQUE,
    partition_count INTEGER NOT NULL,
    internal        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE topic_configs (
    topic_id BLOB NOT NULL,
    name     TEXT NOT NULL,
    value    TEXT NOT NULL,
    PRIMARY KEY (topic_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE broker_configs (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Only partitions that have been written to, or that have a moved log start, have a row.
CREATE TABLE partitions (
    partition_id     INTEGER PRIMARY KEY,  -- never reused: it addresses the slots in synced-ends
    topic_id         BLOB NOT NULL,
    partition        INTEGER NOT NULL,
    log_start_offset INTEGER NOT NULL,
    unrecorded       INTEGER NOT NULL,     -- 1: the active segment may reach beyond its row in segments, the checkpoint
    UNIQUE (topic_id, partition)
) STRICT;
CREATE INDEX partitions_unrecorded ON partitions (partition_id) WHERE unrecorded;

-- The list of segment files. The last one of a partition is active; its size and end are lower bounds while
-- the partition is marked as unrecorded.
CREATE TABLE segments (
    partition_id         INTEGER NOT NULL,
    base_offset          INTEGER NOT NULL,
    revision             INTEGER NOT NULL,  -- how often it was rewritten; part of the file name
    end_offset           INTEGER NOT NULL,
    size_bytes           INTEGER NOT NULL,
    first_timestamp      INTEGER NOT NULL,
    max_timestamp        INTEGER NOT NULL,
    max_timestamp_offset INTEGER NOT NULL,  -- base offset of the first batch with this timestamp
    compacted_at_ms      INTEGER NOT NULL,  -- when compaction first processed it; -1: not yet
    PRIMARY KEY (partition_id, base_offset)
) STRICT, WITHOUT ROWID;

-- Producer state as of the checkpoint of the partition.
CREATE TABLE producers (
    partition_id   INTEGER NOT NULL,
    producer_id    INTEGER NOT NULL,
    epoch          INTEGER NOT NULL,
    last_timestamp INTEGER NOT NULL,
    batches        BLOB NOT NULL,
    PRIMARY KEY (partition_id, producer_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE generation_floors (
    group_id   TEXT PRIMARY KEY,
    generation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- __consumer_offsets in commit order. The two tables below are its indexes, up to date to meta.settled_seq.
CREATE TABLE offsets_log (
    seq       INTEGER PRIMARY KEY,
    partition INTEGER NOT NULL,
    "offset"  INTEGER NOT NULL,
    key       BLOB NOT NULL,
    value     BLOB,                         -- NULL: a tombstone
    timestamp INTEGER NOT NULL,
    crc       INTEGER NOT NULL
) STRICT;

CREATE TABLE offsets_positions (
    partition INTEGER NOT NULL,
    "offset"  INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    PRIMARY KEY (partition, "offset")
) STRICT, WITHOUT ROWID;

CREATE TABLE offsets_latest (
    key BLOB PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
