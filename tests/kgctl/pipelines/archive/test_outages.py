"""A run that follows outlives a broker that is away, whenever it goes: nothing is lost, nothing is archived twice."""

from __future__ import annotations

from pathlib import Path

from kgctl.exit_codes import exit_code_of
from kgctl.pipelines.archive.manifest import read_archive
from kgctl.pipelines.archive.verifying import verify
from tests.harness.clusters import Cluster
from tests.harness.running import until
from tests.kgctl.pipelines.archive.clusters import against, archived, consumed
from tests.kgctl.pipelines.archive.following import Following
from tests.kgctl.pipelines.archive.making import NOON_MS
from tests.kgctl.pipelines.source.topics import Topics

WAITS, STARTS_AGAIN = "waiting for the cluster: ", "job archive starts again: "
RESTART_S = 60
DAY_MS = 86_400_000


def test_a_broker_that_restarts_between_plan_and_read_and_between_commits(own_cluster: Cluster, tmp_path: Path) -> None:
    topics = Topics(own_cluster.bootstrap_servers)
    name = topics.make(2, retention_ms="-1")
    topics.fill(
        name, [{"value": b"%d" % n, "partition": n % 2, "timestamp": NOON_MS + n // 10 * DAY_MS} for n in range(20)]
    )
    kills = 0

    def kill_first() -> None:
        nonlocal kills
        kills += 1
        if kills == 1:
            own_cluster.kill()

    # Where an archive begins is what the first step found, also if that step failed.
    with Following(topics, tmp_path, name, before_read=kill_first, since=NOON_MS + DAY_MS) as run:
        until(lambda: any(note.startswith(STARTS_AGAIN) for note in run.notes), 30)
        own_cluster.restart()
        until(lambda: run.records == 10, RESTART_S)
        own_cluster.kill()
        until(lambda: run.notes[-1].startswith(WAITS), 30)
        own_cluster.restart()
        topics.count(name, 10, 2)
        until(lambda: run.records == 20, RESTART_S)
    assert run.failure is None
    # One line for each outage, not one for each attempt; the first was noticed by the read, perhaps.
    assert 1 <= sum(note.startswith(WAITS) for note in run.notes) <= 2
    assert archived(tmp_path, name) == {one: rows[5:] for one, rows in consumed(topics, name).items()}
    assert verify(tmp_path).findings == ()
    assert against(topics, read_archive(tmp_path)) == []


def test_a_cluster_that_stays_away_ends_the_run(own_cluster: Cluster, tmp_path: Path) -> None:
    topics = Topics(own_cluster.bootstrap_servers)
    name = topics.make(1)
    topics.count(name, 3)
    with Following(topics, tmp_path, name, max_outage_s=0.2) as run:
        until(lambda: run.records == 3)
        own_cluster.kill()
        failure = run.ends()
    assert failure is not None
    assert exit_code_of(failure) == 7
    assert verify(tmp_path).findings == ()
