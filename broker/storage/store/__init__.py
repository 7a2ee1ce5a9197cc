"""The SQLite store: schema, checked pages, commit marker and hash chain, topic catalog."""
