"""What --timings shows, and which runs are small."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.local import LocalBroker
from kgctl.pipelines import run_size
from kgctl.pipelines.catalog import in_order
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.run_size import is_small
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.timings import Timings, timing_line, timing_of_batch
from tests.harness.commandline import Kgctl, fill


def test_a_table_has_a_line_for_each_phase() -> None:
    events: list[Progress] = []
    timings = Timings(events.append)
    timings.took("jvm", 3.25)
    with timings.phase("query", "decode"):
        pass
    durations = {"triggerExecution": 2000, "addBatch": 1500, "queryPlanning": 300, "walCommit": 100, "getBatch": 0}
    events.append(timing_of_batch("decode", 0, durations))
    assert list(map(timing_line, events)) == [
        "            jvm           3.2 s  the JVM starts, and Python loads Spark",
        "decode      query         0.0 s  the query is planned and started",
        "decode      batch 0       2.0 s  addBatch 1.5, queryPlanning 0.3, walCommit 0.1",
    ]
    assert all(len(line) <= 80 for line in map(timing_line, events))


def test_a_phase_that_fails_is_not_reported() -> None:
    events: list[Progress] = []
    with pytest.raises(ValueError, match="bad"), Timings(events.append).phase("cluster"):
        raise ValueError("bad")
    assert events == []


def test_a_run_is_small_by_what_its_topics_and_tables_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders").exit_code == 0
        fill(kgctl, "orders", [3])
        kgctl.commit("readers", "orders", p0=2)
        decode, topics = in_order(["decode", "lag"]), ("__consumer_offsets",)
        once = RunSettings(("decode",), broker.bootstrap_servers, str(tmp_path))
        follow = RunSettings(("decode",), broker.bootstrap_servers, str(tmp_path), follow=True)
        assert is_small(once, decode, topics)
        assert not is_small(follow, decode, topics)
        assert not is_small(once, in_order(["compaction"]), topics)
        monkeypatch.setattr(run_size, "SMALL", 0)
        assert not is_small(once, decode, topics)
        assert is_small(once, in_order(["lag"]), topics)


def test_a_run_is_not_small_if_the_cluster_does_not_answer(tmp_path: Path) -> None:
    settings = RunSettings(("decode",), "127.0.0.1:1", str(tmp_path), timeout_s=1.0)
    assert not is_small(settings, in_order(["decode"]), ("__consumer_offsets",))
