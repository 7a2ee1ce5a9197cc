"""`kgctl compat` prints the same bytes as Kafka's own tools, and exits with their codes if asked to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgctl.compat.tool import DIALECTS
from tests.harness import clusters
from tests.harness.clusters import Cluster
from tests.harness.commandline import Kgctl
from tests.harness.compat_state import (
    GROUP_CHANGES,
    TOOL_OF_GROUPS,
    Case,
    Differences,
    commit_all,
    group_reads,
    prepared,
)
from tests.harness.reference_kafka import Unavailable
from tests.harness.tool_server import ToolServer


@pytest.fixture(scope="module")
def tool_servers() -> Iterator[dict[str, ToolServer]]:
    try:
        started = {dialect: ToolServer(version) for dialect, version in DIALECTS.items()}
    except Unavailable as reason:
        pytest.skip(f"no Java tools of Kafka: {reason}")
    with started["3.9"], started["4.1"]:
        yield started


@pytest.fixture(scope="module", params=["kgctl", "kafka"])
def prepared_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of its own, since all groups are listed."""
    with clusters.start(request.param) as cluster, prepared(cluster):
        yield cluster


def compared(server: ToolServer, dialect: str, cluster: Cluster, case: Case, differences: Differences) -> None:
    """Run both tools, and note stdout and exit codes where they differ."""
    words = ["--bootstrap-server", cluster.bootstrap_servers, *case]
    theirs = server.run(TOOL_OF_GROUPS, *words)
    if case in GROUP_CHANGES:
        commit_all(cluster)
    ours = Kgctl()("compat", "--ak-exit-codes", "--dialect", dialect, f"kafka-{TOOL_OF_GROUPS}", *words)
    command = f"{dialect}: {TOOL_OF_GROUPS} {' '.join(case)}"
    differences.add(command, (theirs.code, theirs.stdout), (ours.exit_code, ours.stdout))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_consumer_groups_are_shown_and_changed_alike(
    prepared_cluster: Cluster, tool_servers: dict[str, ToolServer], dialect: str, tmp_path: Path
) -> None:
    differences = Differences()
    cases = group_reads(tmp_path)
    assert len(cases) >= 60
    for case in cases:
        compared(tool_servers[dialect], dialect, prepared_cluster, case, differences)
    for case in GROUP_CHANGES:
        commit_all(prepared_cluster)
        compared(tool_servers[dialect], dialect, prepared_cluster, case, differences)
    assert not differences, "\n".join(differences)
