"""Internal topics kept as rows of the store."""
