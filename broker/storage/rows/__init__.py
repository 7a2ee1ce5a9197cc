"""Topics kept as rows of the store."""
