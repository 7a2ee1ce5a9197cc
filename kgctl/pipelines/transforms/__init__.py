"""What the jobs compute: DataFrames to DataFrames, without reading or writing anything."""
