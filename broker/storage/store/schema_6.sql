-- From format 5 to format 6: security.

-- Users, ACLs and quotas; the broker's security packages define the kinds and the values.
CREATE TABLE security_records (
    kind  TEXT NOT NULL,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
