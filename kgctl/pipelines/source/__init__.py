"""format("kgctl"): reads and writes topics over kgctl's own wire client. Only `datasource`, `streaming` and `writer` know Spark."""
