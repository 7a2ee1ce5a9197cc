"""`kgctl store`: read data directories of this broker offline."""
