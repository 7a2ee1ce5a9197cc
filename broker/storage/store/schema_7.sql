-- From format 6 to format 7: transactions.

-- __transaction_state in commit order, and its indexes, as for __consumer_offsets; up to date to meta.transactions_settled_seq.
CREATE TABLE transactions_log (
    seq       INTEGER PRIMARY KEY,
    partition INTEGER NOT NULL,
    "offset"  INTEGER NOT NULL,
    key       BLOB NOT NULL,
    value     BLOB,                         -- NULL: a tombstone
    timestamp INTEGER NOT NULL,
    crc       INTEGER NOT NULL
) STRICT;

CREATE TABLE transactions_positions (
    partition INTEGER NOT NULL,
    "offset"  INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    PRIMARY KEY (partition, "offset")
) STRICT, WITHOUT ROWID;

CREATE TABLE transactions_latest (
    key BLOB PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The epoch of the coordinator that wrote the producer's last marker; -1: there is none.
ALTER TABLE producers ADD COLUMN coordinator_epoch INTEGER NOT NULL DEFAULT -1;
-- Where the open transaction of the producer begins; -1: it has none. No batch behind the checkpoint begins or ends one.
ALTER TABLE producers ADD COLUMN transaction_offset INTEGER NOT NULL DEFAULT -1;
CREATE INDEX producers_in_transactions ON producers (partition_id) WHERE transaction_offset >= 0;

-- Aborted transactions with records in a partition.
CREATE TABLE aborted_transactions (
    partition_id       INTEGER NOT NULL,
    last_offset        INTEGER NOT NULL,  -- of the marker
    producer_id        INTEGER NOT NULL,
    first_offset       INTEGER NOT NULL,
    last_stable_offset INTEGER NOT NULL,  -- no transaction that ends later begins before it
    PRIMARY KEY (partition_id, last_offset)
) STRICT, WITHOUT ROWID;

-- Offsets that groups commit when a transaction is committed, in the order in which clients sent them.
CREATE TABLE pending_offsets (
    position            INTEGER PRIMARY KEY,
    producer_id         INTEGER NOT NULL,
    group_id            TEXT NOT NULL,
    topic               TEXT NOT NULL,
    partition           INTEGER NOT NULL,
    producer_epoch      INTEGER NOT NULL,
    "offset"            INTEGER NOT NULL,
    leader_epoch        INTEGER NOT NULL,
    metadata            TEXT NOT NULL,
    commit_timestamp_ms INTEGER NOT NULL,
    superseded          INTEGER NOT NULL,  -- 1: a later OffsetCommit replaces it
    UNIQUE (producer_id, group_id, topic, partition)
) STRICT;

-- Finalized levels of features that differ from their defaults.
CREATE TABLE feature_levels (
    name  TEXT PRIMARY KEY,
    level INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
