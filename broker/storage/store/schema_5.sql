-- From format 4 to format 5: what a segment file must contain.

-- CRC chained over the headers of all batches up to size_bytes; NULL: unknown, as an older format began the segment.
ALTER TABLE segments ADD COLUMN digest INTEGER;
-- 1: a trailer follows the batches, as this or a later format sealed the segment.
ALTER TABLE segments ADD COLUMN has_trailer INTEGER NOT NULL DEFAULT 0;

-- Paths below segments/ that the store stopped listing and that may still be there.
CREATE TABLE unlisted (
    path TEXT PRIMARY KEY,
    fate TEXT NOT NULL  -- deleted: the directory of a deleted topic; damaged: the original of a repaired segment
) STRICT, WITHOUT ROWID;

-- Offsets that were removed together, up to the row `seq` of offsets_log: all of a topic or of a group. Tombstones follow
-- in their rows, and then the entry goes.
CREATE TABLE offset_removals (
    kind TEXT NOT NULL,    -- topic, group
    name TEXT NOT NULL,
    seq  INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- The newest tombstone of the group since the last check whether it has a live offset; 0: it has one.
ALTER TABLE offsets_groups ADD COLUMN doubtful INTEGER NOT NULL DEFAULT 0;
