"""`kgctl pipeline run` as a program under test, on the cluster or on this machine."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from tests.kgctl.pipelines.cluster.conftest import conf_for
from tests.kgctl.pipelines.cluster.programs import Line, Program, running
from tests.kgctl.pipelines.cluster.standalone import Cluster

LOCAL = "local[*]"


def pipeline(
    cluster: Cluster, bootstrap: str, out: Path, *arguments: str, master: str | None = None
) -> contextlib.AbstractContextManager[Program]:
    """A run on the cluster, or with another master, that reports progress as JSON lines."""
    out.mkdir(parents=True, exist_ok=True)
    conf = [word for key, value in conf_for(cluster.scratch) for word in ("--conf", f"{key}={value}")]
    place = ["--master", cluster.url, *conf] if master is None else ["--master", master]
    options = ["--bootstrap", bootstrap, "--out", str(out), "--quick", "--json", *place]
    return running(
        ["kgctl", "pipeline", "run", *arguments, *options], out.parent / f"{out.name}.stderr", cluster.scratch
    )


def run_to_the_end(
    cluster: Cluster, bootstrap: str, out: Path, *arguments: str, master: str | None = None
) -> list[Line]:
    with pipeline(cluster, bootstrap, out, *arguments, master=master) as program:
        assert program.await_end() == 0, program.stderr_tail()
        return program.lines


def comparable(found: list[dict[str, Any]]) -> list[str]:
    """Rows as texts in an order that does not depend on how they were written."""
    return sorted(repr(sorted(row.items())) for row in found)
