"""Share partitions do what Kafka 4.1's SharePartition does, in recorded walks of random steps."""

from __future__ import annotations

from tests.harness.oracle.share_partition.kafka import difference, recorded


def test_recorded_walks_have_kafkas_results_and_states() -> None:
    walks = steps = 0
    for seed, walk in recorded():
        assert difference(walk) is None, f"seed {seed}"
        walks += 1
        steps += len(walk)
    assert walks == 400
    assert steps > 9_000
