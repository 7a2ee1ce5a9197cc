"""`kgctl pipeline run` as a user starts it, and the rows that it wrote."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet

from kgctl.client.admin.offsets import commit
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.tables.manifest import TableFolder
from tests.harness.commandline import Kgctl

KGCTL = [sys.executable, "-m", "kgctl"]


def run(
    kgctl: Kgctl, out: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*KGCTL, "pipeline", "run", *arguments, "--quick", "--out", str(out), "--bootstrap", str(kgctl.bootstrap)],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        env=env,
    )


def add_commits(kgctl: Kgctl, offsets: range) -> None:
    """Group `readers` commits each of the offsets for partition 0 of topic `orders`."""
    partition = TopicPartition("orders", 0)
    with kgctl.admin() as admin:
        for offset in offsets:
            assert admin.run(commit(admin.cluster, "readers", {partition: offset})) == {partition: None}


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    files = TableFolder(out / table).files()
    return [row for file in files for row in pyarrow.parquet.ParquetFile(file).read().to_pylist()]
