"""What several suites share: brokers to start, the reference Kafka, recordings, simulation, virtual clients."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
