-- What format 3 adds to schema_2.sql.

-- The groups that have a live offset, so that a start need not look for them all over the store; kept up to meta.settled_seq.
-- meta.groups_indexed: it was filled once from the rows.
CREATE TABLE offsets_groups (
    prefix BLOB PRIMARY KEY  -- of the group's keys: key version, length, group id
) STRICT, WITHOUT ROWID;
