"""The tables on disk: folders of Parquet files with a manifest of what is committed."""
