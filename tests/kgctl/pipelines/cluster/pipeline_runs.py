"""`kgctl pipeline run` as a program under test, on the cluster or on this machine, and the rows that it wrote."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow.parquet

from kgctl.pipelines.tables.manifest import TableFolder
from tests.kgctl.pipelines.cluster.conftest import conf_for
from tests.kgctl.pipelines.cluster.programs import Line, Program, running
from tests.kgctl.pipelines.cluster.standalone import Cluster

LOCAL = "local[*]"


def pipeline(
    cluster: Cluster, bootstrap: str, out: Path, *words: str, master: str | None = None
) -> contextlib.AbstractContextManager[Program]:
    """Where the cluster is, unless another master is named; told in lines of JSON."""
    out.mkdir(parents=True, exist_ok=True)
    conf = [word for key, value in conf_for(cluster.scratch) for word in ("--conf", f"{key}={value}")]
    place = ["--master", cluster.url, *conf] if master is None else ["--master", master]
    told = ["--bootstrap", bootstrap, "--out", str(out), "--quick", "--json", *place]
    return running(["kgctl", "pipeline", "run", *words, *told], out.parent / f"{out.name}.stderr", cluster.scratch)


def run_to_the_end(cluster: Cluster, bootstrap: str, out: Path, *words: str, master: str | None = None) -> list[Line]:
    with pipeline(cluster, bootstrap, out, *words, master=master) as program:
        assert program.await_end() == 0, program.said()
        return program.lines


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    files = TableFolder(out / table).files()
    return [row for file in files for row in pyarrow.parquet.ParquetFile(file).read().to_pylist()]


def comparable(found: list[dict[str, Any]]) -> list[str]:
    """In an order that does not depend on who wrote them."""
    return sorted(repr(sorted(row.items())) for row in found)
