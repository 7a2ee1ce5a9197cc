"""Archives: any topic as Parquet files, with a manifest of the offsets that were read and of the files' checksums."""
