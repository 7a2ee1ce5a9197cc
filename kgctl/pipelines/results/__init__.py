"""Where the verdicts of a run go: Kafka topics, a Prometheus text file, webhooks, and the exit code. Does not need Spark."""
