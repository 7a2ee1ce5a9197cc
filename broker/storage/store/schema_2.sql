-- From format 1 to format 2: group events.

-- __kgctl_group_events, one partition. Retention deletes from the front; meta.group_events_start is the log start offset.
CREATE TABLE group_events (
    "offset"  INTEGER PRIMARY KEY,
    key       BLOB NOT NULL,
    value     BLOB NOT NULL,
    timestamp INTEGER NOT NULL,
    end_bytes INTEGER NOT NULL,  -- size of keys and values up to this row, deleted rows included
    crc       INTEGER NOT NULL
) STRICT;
