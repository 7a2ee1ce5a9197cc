"""format("kgctl"): reads and writes topics with kgctl's own client. `datasource`, `streaming`, `tasks` and `writer` import Spark."""
