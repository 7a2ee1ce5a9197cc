"""The assignor of a group is the one that Kafka picks, also if votes tie."""

from __future__ import annotations

from pathlib import Path

from tests.broker.cores.groups.consumer.votes import played

RECORDED = Path(__file__).parent / "votes.txt"


def test_votes_for_assignors_are_counted_as_by_kafka() -> None:
    lines = RECORDED.read_text().splitlines()
    assert len(lines) == 80
    assert [played(line) for line in lines] == lines
