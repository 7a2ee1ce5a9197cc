"""The jobs write the same tables on a cluster as on one machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.local import LocalBroker
from tests.harness.commandline import Kgctl, fill, member_of
from tests.kgctl.pipelines.cluster.pipeline_runs import LOCAL, comparable, run_to_the_end
from tests.kgctl.pipelines.cluster.standalone import Cluster
from tests.kgctl.pipelines.runs import rows

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

JOBS = ("decode", "lag", "evaluate", "rebalances")
GROUPS = [f"group-{number}" for number in range(12)]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker with groups that are behind by different counts, and rebalances of each."""
    with LocalBroker({"group.initial.rebalance.delay.ms": 0}) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders", "--partitions", "3").exit_code == 0
        fill(kgctl, "orders", [500, 400, 300])
        for number, group in enumerate(GROUPS):
            with member_of(kgctl, group, {"orders": [0, 1]}):
                pass
            kgctl.commit(group, "orders", p0=500 - number, p1=400)
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def outs(bootstrap: str, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What a run on this machine and a run on the cluster wrote."""
    folder = tmp_path_factory.mktemp("whole-run")
    run_to_the_end(cluster, bootstrap, folder / "local", *JOBS, "--step", "1", master=LOCAL)
    lines = run_to_the_end(cluster, bootstrap, folder / "cluster", *JOBS, "--step", "1", "--report")
    assert [line["job"] for line in lines if line["kind"] == "done"] == [*JOBS, "report"]
    return folder / "local", folder / "cluster"


def test_commits_and_groups_are_the_same(outs: tuple[Path, Path]) -> None:
    for table, least in (("commits", 2 * len(GROUPS)), ("group_events", 2 * len(GROUPS)), ("quarantine", 0)):
        local, cluster = (comparable(of_users(rows(out, table))) for out in outs)
        assert local == cluster
        assert len(local) >= least


def test_rebalances_are_the_same(outs: tuple[Path, Path]) -> None:
    local, cluster = (comparable(rows(out, "f_rebalance")) for out in outs)
    assert local == cluster
    assert len(local) == 2 * len(GROUPS)


def test_lag_is_the_same_at_common_points(outs: tuple[Path, Path]) -> None:
    local, cluster = (rows(out, "f_lag") for out in outs)
    # The last point of each run is its own current time.
    shared = {row["at"] for row in local} & {row["at"] for row in cluster}
    assert shared
    both = [comparable([row for row in some if row["at"] in shared]) for some in (local, cluster)]
    assert both[0] == both[1]
    now = [
        {place(row): row["lag"] for row in some if row["at"] == max(one["at"] for one in some)}
        for some in (local, cluster)
    ]
    assert (
        now[0]
        == now[1]
        == {
            (group, "orders", part): number if part == 0 else 0
            for number, group in enumerate(GROUPS)
            for part in (0, 1)
        }
    )


def test_health_is_the_same(outs: tuple[Path, Path]) -> None:
    local, cluster = ({place(row): (row["status"], row["lag"]) for row in rows(out, "health")} for out in outs)
    assert local == cluster
    assert len(local) == 2 * len(GROUPS)


def test_the_run_on_the_cluster_writes_the_report(outs: tuple[Path, Path]) -> None:
    assert GROUPS[-1] in (outs[1] / "report.html").read_text()


def place(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["group"], row["topic"], row["part"]


def of_users(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the positions that the first run published."""
    return [row for row in found if not row["group"].startswith("spark-")] if found and "group" in found[0] else found
