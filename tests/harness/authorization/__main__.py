"""Record the answers of a real Kafka: `python -m tests.harness.authorization` (requires java and mvn)."""

from __future__ import annotations

from tests.harness.authorization.clusters import on_kafka
from tests.harness.authorization.recording import PATH, save

if __name__ == "__main__":
    save(on_kafka())
    print(PATH)
