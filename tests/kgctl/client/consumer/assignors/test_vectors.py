"""The assignors give the assignments that Kafka's own gave in recorded rebalances (see tests/harness/java)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from kgctl.client.consumer.assignors.loading import load_assignor
from tests.kgctl.client.consumer.assignors.vectors import as_texts, read

VECTORS = list(read((Path(__file__).parent / "java_vectors.jsonl").read_text().splitlines()))


def test_every_recorded_rebalance_has_javas_result() -> None:
    for number, vector in enumerate(VECTORS):
        assigned = load_assignor(vector.assignor).assign(vector.cluster, vector.members)
        assert as_texts(assigned) == vector.assigned, (number, vector)


def test_the_recorded_rebalances_are_of_all_kinds() -> None:
    kinds = Counter[str]()
    for vector in VECTORS:
        members = vector.members.values()
        kinds[vector.assignor] += 1
        kinds["different topics"] += len({frozenset(member.topics) for member in members}) > 1
        kinds["racks"] += any(member.rack_id for member in members)
        kinds["static"] += any(member.group_instance_id for member in members)
        kinds["missed generation"] += len({member.generation_id for member in members} - {-1}) > 1
        kinds["no generation"] += any(member.user_data and member.generation_id < 0 for member in members)
    assert len(kinds) == 9
    assert all(count >= 8 for count in kinds.values()), kinds
