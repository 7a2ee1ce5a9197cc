-- From format 8 to format 9: share groups.

-- __share_group_state in commit order, and its indexes, as for __consumer_offsets; up to date to meta.share_state_settled_seq. A share
-- partition has snapshots, and updates since the newest of them: all rows behind a snapshot are needed (see compacted_tables.py).
CREATE TABLE share_state_log (
    seq       INTEGER PRIMARY KEY,
    partition INTEGER NOT NULL,
    "offset"  INTEGER NOT NULL,
    key       BLOB NOT NULL,
    value     BLOB,                         -- NULL: a tombstone
    timestamp INTEGER NOT NULL,
    crc       INTEGER NOT NULL
) STRICT;

CREATE TABLE share_state_positions (
    partition INTEGER NOT NULL,
    "offset"  INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    PRIMARY KEY (partition, "offset")
) STRICT, WITHOUT ROWID;

CREATE TABLE share_state_latest (
    key BLOB PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
