"""Record walks of share partitions with Kafka's SharePartition: `python -m tests.harness.oracle.share_partition` (requires java and mvn)."""

from __future__ import annotations

from tests.harness.oracle.share_partition.kafka import RECORDED, save

WALKS = 400

if __name__ == "__main__":
    save(range(WALKS))
    print(RECORDED)
