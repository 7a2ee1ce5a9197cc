"""The SQLite store: schema, checked pages, commit sequence and commit marker."""
