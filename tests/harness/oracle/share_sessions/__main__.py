"""Record walks of share sessions from a real Kafka: `python -m tests.harness.oracle.share_sessions` (requires java and mvn)."""

from __future__ import annotations

from tests.harness.oracle.share_sessions.recorded import RECORDING, record, save
from tests.harness.reference_kafka import ReferenceKafka

WALKS = 60

if __name__ == "__main__":
    with ReferenceKafka() as kafka:
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        save(record((host, int(port)), range(WALKS)))
    print(RECORDING)
