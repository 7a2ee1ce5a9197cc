"""`kgctl pipeline maintain`: previews, changes, and refuses while a run uses the folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.groups import LAG, LOG_ENDS
from kgctl.pipelines.tables.manifest import TableFolder, held_by_one_run
from tests.harness.commandline import Kgctl
from tests.kgctl.pipelines.report.tables import commit
from tests.kgctl.pipelines.tables.test_schema_versions import FORMAT_1

KGCTL = Kgctl()
LONG_AGO = "36500d"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Three days of f_lag, two of f_rebalance, and one day of log_ends in five files."""
    out = tmp_path / "facts"
    shutil.copytree(FORMAT_1, out)
    for number in range(5):
        commit(out, LOG_ENDS.name, [{"topic": "t", "part": 0, "log_end": number}], f"lag-{number}")
    return out


def files(out: Path) -> dict[str, int]:
    return {name: len(TableFolder(out / name).files()) for name in TABLES if (out / name).exists()}


def test_without_execute_it_shows_what_it_would_do(out: Path) -> None:
    before = sorted(out.rglob("*"))
    rows = KGCTL.rows("pipeline", "maintain", "--out", out, "--merge", "--keep", "30d", "--keep", "log_ends=all")
    assert [(row["table"], row["action"], row["files"], row["files_after"], row["rows"]) for row in rows] == [
        ("log_ends", "merge", 5, 1, 5),
        ("f_lag", "drop", 3, 0, 6),
        ("f_rebalance", "drop", 2, 0, 2),
    ]
    assert {row["status"] for row in rows} == {"planned"}
    assert sorted(out.rglob("*")) == before
    shown = KGCTL("pipeline", "maintain", "--out", out, "--merge")
    assert "Dry run: nothing was changed. Add --execute to apply the plan." in shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_with_execute_it_does_that(out: Path) -> None:
    options = ("--out", out, "--merge", "--keep", LONG_AGO, "--keep", "f_lag=1d")
    planned = KGCTL.rows("pipeline", "maintain", *options)
    done = KGCTL.rows("pipeline", "maintain", *options, "--execute")
    assert [{**row, "status": "done"} for row in planned] == done
    assert files(out) == {"f_lag": 0, "f_rebalance": 2, "log_ends": 1}
    assert TableFolder(out / LAG.name).state().committed == 3
    assert KGCTL.rows("pipeline", "maintain", *options, "--execute") == []
    status = {row["table"]: row for row in KGCTL.rows("pipeline", "status", "--out", out)}
    assert (status["log_ends"]["rows"], status["log_ends"]["files"], status["log_ends"]["batches"]) == (5, 1, 5)


def test_more_days_than_the_calendar_has_keep_all(out: Path) -> None:
    before = files(out)
    for days in ("999999d", "99999999999d"):
        done = KGCTL("pipeline", "maintain", "--out", out, "--keep", days, "--execute")
        assert (done.exit_code, files(out)) == (0, before)


def test_a_run_in_the_folder_is_not_disturbed(out: Path) -> None:
    with held_by_one_run(out):
        refused = KGCTL("pipeline", "maintain", "--out", out, "--merge", "--execute")
        assert refused.exit_code == 6
        assert "runs jobs in this folder" in refused.stderr
        assert KGCTL("pipeline", "maintain", "--out", out, "--merge").exit_code == 0
    assert files(out)["log_ends"] == 5


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Give at least one of them."),
        (["--keep", "lag=3d"], 2, "there is no table 'lag'. Did you mean f_lag?"),
        (["--keep", "36h"], 2, "'36h' is not a number of days, such as 30d."),
        (["--keep", "soon"], 2, "'--keep'"),
    ],
)
def test_wrong_usage_exits_with_2(out: Path, arguments: list[str], code: int, message: str) -> None:
    result = KGCTL("pipeline", "maintain", "--out", out, *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())


def test_what_is_not_as_kgctl_made_it_is_named(out: Path) -> None:
    shutil.rmtree(out / "_staging", ignore_errors=True)
    (out / "_staging").write_text("")
    failed = KGCTL("pipeline", "maintain", "--out", out, "--merge", "--execute")
    assert failed.stderr == f"Error: {out / '_staging'} is not a folder; move it to another place\n"
    (out / "_format").write_bytes(b"\xff\n")
    for command in (["maintain", "--merge"], ["status"], ["run", "decode"]):
        failed = KGCTL("pipeline", *command, "--out", out)
        assert failed.stderr == f"Error: {out / '_format'} is damaged: it should name the format of the tables\n"
    (out / "_format").unlink()
    (out / "_format").mkdir()
    assert "_format is damaged" in KGCTL("pipeline", "status", "--out", out).stderr


def test_a_folder_without_tables_is_not_found(tmp_path: Path) -> None:
    assert KGCTL("pipeline", "maintain", "--out", tmp_path, "--merge").exit_code == 5
