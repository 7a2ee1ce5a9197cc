"""`kgctl compat` prints what Kafka's tools printed when they were recorded, on the same state."""

from __future__ import annotations

import json
from pathlib import Path

from tests.harness import clusters
from tests.harness.commandline import Kgctl
from tests.harness.compat_recordings import FILE, PLANS, normalised
from tests.harness.compat_state import Differences, commit_all, group_reads, prepared


def test_the_output_is_that_of_kafkas_tools(tmp_path: Path) -> None:
    rows = json.loads(FILE.read_text())
    assert {row["dialect"] for row in rows} == {"3.9", "4.1"}
    differences = Differences()
    group_reads(tmp_path)
    with clusters.start("kgctl") as cluster, prepared(cluster):
        for row in rows:
            commit_all(cluster)
            words = [word.replace(PLANS, str(tmp_path)) for word in row["arguments"]]
            given = ("--bootstrap-server", cluster.bootstrap_servers, *words)
            options = ("--ak-exit-codes", "--dialect", row["dialect"])
            done = Kgctl()("compat", *options, f"kafka-{row['tool']}", *given)
            ours = (done.exit_code, normalised(done.stdout, cluster, tmp_path))
            command = f"{row['dialect']}: {row['tool']} {' '.join(row['arguments'])}"
            differences.add(command, (row["code"], row["stdout"]), ours)
    assert not differences, "\n".join(differences)
