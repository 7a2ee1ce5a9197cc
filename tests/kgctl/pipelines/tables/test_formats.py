"""Tables in the formats of Delta Lake and Iceberg, read back through their own packages."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.groups import LAG, LOG_ENDS
from kgctl.pipelines.tables import formats
from kgctl.pipelines.tables.arrow import arrow_schema, read_file
from kgctl.pipelines.tables.formats import DELTA, FORMATS, ICEBERG, FormatMissing, check_format, open_table, set_format
from kgctl.pipelines.tables.maintenance import maintain, plan
from kgctl.pipelines.tables.manifest import StagedFile
from kgctl.pipelines.tables.retention import Keep, drop
from kgctl.pipelines.views.query import run_query
from tests.harness.commandline import Kgctl

DAYS = (date(2024, 1, 1), date(2024, 1, 2))
DIE = """
import os, sys
from pathlib import Path
from kgctl.pipelines.tables.formats import open_table
from tests.kgctl.pipelines.tables.test_formats import put
out = Path(sys.argv[1])
kind = type(open_table(out / "log_ends"))
publish = kind.publish
def publish_and_die(*arguments):
    if sys.argv[2] == "after":
        publish(*arguments)
    os._exit(9)
kind.publish = publish_and_die
put(out, "decode-0a1b2c3d-000001")
"""


@pytest.fixture(params=[DELTA, ICEBERG])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    out = tmp_path / "out"
    out.mkdir()
    set_format(out, request.param)
    return out


def put(out: Path, batch: str, *, notes: dict[str, str | int] | None = None, name: str = LOG_ENDS.name) -> bool:
    """A row per day, whose topic is the batch."""
    with open_table(out / name).writing() as writer:
        staging = writer.stage(batch)
        staged = []
        for day in DAYS:
            path = staging / f"date={day}" / "part-0.parquet"
            path.parent.mkdir(parents=True)
            at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
            pa.parquet.write_table(pa.Table.from_pylist([{"topic": batch, "at": at}], arrow_schema(TABLES[name])), path)
            staged.append(StagedFile(f"date={day}/part-0.parquet", 1))
        return writer.commit(batch, staging, staged, notes)


def by_kgctl(out: Path) -> list[str]:
    located = open_table(out / LOG_ENDS.name).located()
    return sorted(row for path, file in located for row in read_file(path, LOG_ENDS, file.schema)["topic"].to_pylist())


def by_package(out: Path) -> list[str]:
    if formats.format_of(out) == DELTA:
        from deltalake import DeltaTable

        rows = DeltaTable(out / LOG_ENDS.name).to_pyarrow_table()
    else:
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog("kgctl", uri=f"sqlite:///{out / '_iceberg.db'}")
        try:
            rows = catalog.load_table("kgctl.log_ends").scan().to_arrow()
        finally:
            catalog.close()
    return sorted(rows["topic"].to_pylist())


def test_batches_are_in_the_log_once(out: Path) -> None:
    stream, other = "decode-0a1b2c3d-{:06d}", "lag-{}"
    assert open_table(out / LOG_ENDS.name).state().committed == 0
    for number in range(3):
        assert put(out, stream.format(number))
        assert put(out, other.format(1700 + number), notes={"last_point_ms": number, "cluster_id": "c"})
    rows = by_kgctl(out)
    for again in (stream.format(0), stream.format(2), other.format(1702)):
        assert not put(out, again)
    assert put(out, other.format(1600))
    assert put(out, "decode-ffffffff-000000")
    assert by_kgctl(out) == by_package(out) == sorted([*rows, *["lag-1600", "decode-ffffffff-000000"] * 2])
    state = open_table(out / LOG_ENDS.name).state()
    assert (state.committed, state.rows, state.notes) == (8, 16, {"last_point_ms": 2, "cluster_id": "c"})
    assert state.written_ms is not None
    sql = "select count(*) as n, count(distinct topic) as topics from log_ends"
    assert [(row.n, row.topics) for row in run_query(out, sql).rows] == [(16, 8)]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_writer_that_dies_beside_the_commit_leaves_all_or_nothing(out: Path, moment: str) -> None:
    put(out, "decode-0a1b2c3d-000000")
    dead = subprocess.run([sys.executable, "-c", DIE, str(out), moment], check=False)
    assert dead.returncode == 9
    first = ["decode-0a1b2c3d-000000"] * 2
    both = first + ["decode-0a1b2c3d-000001"] * 2
    assert by_kgctl(out) == by_package(out) == (first if moment == "before" else both)
    assert put(out, "decode-0a1b2c3d-000001") == (moment == "before")
    assert by_kgctl(out) == by_package(out) == both


def test_retention_drops_days(out: Path) -> None:
    for number in range(2):
        put(out, f"decode-0a1b2c3d-{number:06d}")
    dropped = drop(out / LOG_ENDS.name, 0, 0, DAYS[1])
    assert (len(dropped), len(by_kgctl(out)), len(by_package(out))) == (2, 2, 2)
    assert not put(out, "decode-0a1b2c3d-000001")
    maintain(out, keep=Keep(30), merges=False)
    assert open_table(out / LOG_ENDS.name).state().rows == 0


def test_delta_tables_are_merged_and_iceberg_tables_refuse(out: Path) -> None:
    for number in range(3):
        put(out, f"decode-0a1b2c3d-{number:06d}")
    rows = by_kgctl(out)
    if formats.format_of(out) == ICEBERG:
        for change in (plan, maintain):
            with pytest.raises(Precondition, match="pyiceberg cannot merge"):
                change(out, keep=Keep(30), merges=True)
        assert by_kgctl(out) == rows
        return
    (step,) = maintain(out, keep=Keep(), merges=True)
    assert (len(step.files), step.files_after) == (6, 2)
    assert by_kgctl(out) == by_package(out) == rows
    assert len(open_table(out / LOG_ENDS.name).files()) == 2
    assert not put(out, "decode-0a1b2c3d-000002")
    assert maintain(out, keep=Keep(), merges=True) == []


def test_a_folder_keeps_its_format(out: Path) -> None:
    put(out, "decode-0a1b2c3d-000000")
    own = formats.format_of(out)
    check_format(out, own, list(TABLES))
    for other in {*FORMATS} - {own}:
        with pytest.raises(Precondition, match=f"have the format {own}: give --format {own}, or another --out"):
            check_format(out, other, list(TABLES))
    refused = Kgctl("127.0.0.1:1")("pipeline", "run", "decode", "--out", out, "--format", "parquet")
    assert refused.exit_code == 6


@pytest.mark.parametrize(("name", "package"), [(DELTA, "deltalake"), (ICEBERG, "pyiceberg")])
def test_a_missing_package_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(FormatMissing, match=rf"needs {package}: pip install 'kgctl\[{name}\]'"):
        check_format(tmp_path, name, list(TABLES))
    refused = Kgctl("127.0.0.1:1")("pipeline", "run", "decode", "--out", tmp_path, "--format", name)
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    set_format(tmp_path, name)
    with pytest.raises(FormatMissing):
        open_table(tmp_path / LAG.name)


def test_the_default_needs_no_package_of_another_format(tmp_path: Path) -> None:
    program = (
        "import sys, kgctl.pipelines.tables.formats as f; from pathlib import Path; "
        f"f.open_table(Path({str(tmp_path)!r}) / {LAG.name!r}).state(); "
        "sys.exit(bool({'deltalake', 'pyiceberg', 'pyarrow', 'sqlalchemy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
