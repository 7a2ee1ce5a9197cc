-- From format 2 to format 3: an index of groups.

-- The groups with a live offset, so that a start need not search the whole store for them; up to date to meta.settled_seq.
-- meta.groups_indexed: it was filled once from the rows.
CREATE TABLE offsets_groups (
    prefix BLOB PRIMARY KEY  -- of the group's offset keys: key version, length, group id
) STRICT, WITHOUT ROWID;
