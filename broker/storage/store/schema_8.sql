-- From format 7 to format 8: aborted transactions by length, as a long one would hide behind all that ended while it was open.

ALTER TABLE aborted_transactions RENAME TO aborted_transactions_7;

-- Aborted transactions with records in a partition.
CREATE TABLE aborted_transactions (
    partition_id INTEGER NOT NULL,
    length_bound INTEGER NOT NULL,  -- less than this lies between first and last offset (see aborted_transactions.py)
    last_offset  INTEGER NOT NULL,  -- of the marker
    producer_id  INTEGER NOT NULL,
    first_offset INTEGER NOT NULL,
    PRIMARY KEY (partition_id, length_bound, last_offset)
) STRICT, WITHOUT ROWID;

INSERT INTO aborted_transactions
SELECT
    partition_id,
    CASE
        WHEN last_offset - first_offset < 64 THEN 64
        WHEN last_offset - first_offset < 4096 THEN 4096
        WHEN last_offset - first_offset < 262144 THEN 262144
        WHEN last_offset - first_offset < 16777216 THEN 16777216
        ELSE 4611686018427387904
    END,
    last_offset,
    producer_id,
    first_offset
FROM aborted_transactions_7;

DROP TABLE aborted_transactions_7;
