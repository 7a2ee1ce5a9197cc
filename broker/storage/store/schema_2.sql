-- What format 2 adds to schema.sql.

-- __kgctl_group_events, one partition; retention deletes from the front. meta.group_events_start: the log start offset.
CREATE TABLE group_events (
    "offset"  INTEGER PRIMARY KEY,
    key       BLOB NOT NULL,
    value     BLOB NOT NULL,
    timestamp INTEGER NOT NULL,
    end_bytes INTEGER NOT NULL,  -- keys and values of this row and all before it, also of those that are gone
    crc       INTEGER NOT NULL
) STRICT;
