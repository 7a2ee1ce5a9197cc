"""Consumers of a real group use an assignor of the user: the example of docs/assignors.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from kgctl.client.consumer.consumer import Consumer
from tests.harness import ROOT
from tests.harness.broker_program import eventually
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The module of the page, as a name that can be imported."""
    page = (ROOT / "docs" / "assignors.md").read_text()
    (source,) = re.findall(r"```python\n(# weights\.py\n.*?)```", page, re.DOTALL)
    (tmp_path / "weights.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "weights", raising=False)
    return "weights"


def test_members_of_a_group_share_by_the_user_data_of_their_own_assignor(
    our_cluster: Cluster, example: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, group = fresh("weighted"), fresh("weighted")
    assert Kgctl(our_cluster.bootstrap_servers)("topics", "create", topic, "--partitions", "8").exit_code == 0

    def member(weight: str, **options: Any) -> Consumer:
        monkeypatch.setenv("WEIGHT", weight)
        made = Consumer(
            bootstrap_servers=our_cluster.bootstrap_servers,
            group_id=group,
            partition_assignment_strategy=f"{example}:Weighted",
            heartbeat_interval_ms=200,
            metadata_max_age_ms=1_000,
            **options,
        )
        made.subscribe([topic])
        return made

    with member("3") as large, member("1") as small:

        def sizes() -> list[int]:
            for consumer in (large, small):
                consumer.poll(0.05)
            return [len(large.assignment()), len(small.assignment())]

        eventually(lambda: sizes() == [6, 2], "three times as many partitions for the larger member")
        rows = Kgctl(our_cluster.bootstrap_servers).rows("groups", "describe", group, "--state")
        assert [row["assignment_strategy"] for row in rows] == ["weighted"]
