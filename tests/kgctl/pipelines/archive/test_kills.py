"""Steps of an archive whose writer dies before any change of the disk: the next one continues with nothing lost and nothing twice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgctl.pipelines.archive.manifest import read_archive
from kgctl.pipelines.archive.verifying import verify
from tests.kgctl.pipelines.archive.dying import LOGS, later
from tests.kgctl.pipelines.archive.model import join, step
from tests.kgctl.pipelines.archive.reading import in_folder, rows_of
from tests.kgctl.pipelines.tables.dying import DIED

pytestmark = pytest.mark.slow
MOST_CHANGES = 500


@pytest.fixture(scope="module")
def program() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.kgctl.pipelines.archive.dying"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        yield started


def test_a_step_is_complete_or_absent_wherever_its_writer_dies(tmp_path: Path, program: subprocess.Popen[str]) -> None:
    before, out = tmp_path / "before", tmp_path / "out"
    step(before, LOGS)
    logs = later(LOGS)
    first = {one: len(log.rows) for one, log in LOGS.items()}
    seen = set()
    for nth in range(1, MOST_CHANGES):
        shutil.copytree(before, out)
        ended = _run(program, out, nth, "step")
        found = read_archive(out)
        counts = {one: len(rows_of(found, one)) for one in LOGS}
        assert counts in (first, {one: len(log.rows) for one, log in logs.items()}), f"died before change {nth}"
        seen.add(len(found.commits))
        step(out, logs)
        archive = read_archive(out)
        assert {one: rows_of(archive, one) for one in logs} == {
            one: list(log.rows.values()) for one, log in logs.items()
        }
        assert verify(out).findings == (), f"died before change {nth}"
        assert archive.ends() == {one: log.end for one, log in logs.items()}
        shutil.rmtree(out)
        if ended == 0:
            break
    assert nth > 20
    assert seen == {1, 2}


@pytest.mark.parametrize("action", ["join", pytest.param("join-no-exchange", marks=pytest.mark.soak)])
def test_readers_see_each_record_once_wherever_a_join_dies(
    tmp_path: Path, program: subprocess.Popen[str], action: str
) -> None:
    before, out = tmp_path / "before", tmp_path / "out"
    logs = LOGS
    step(before, logs)
    for _ in range(2):
        logs = later(logs)
        step(before, logs)
    expected = {one: list(log.rows.values()) for one, log in logs.items()}
    in_files = in_folder(before)
    seen = set()
    for nth in range(1, MOST_CHANGES):
        shutil.copytree(before, out)
        ended = _run(program, out, nth, action)
        found = read_archive(out)
        seen.add(len(found.commits))
        assert {one: rows_of(found, one) for one in logs} == expected, f"died before change {nth}"
        # Without an exchange, the folder lacks a day between two renames.
        assert in_folder(out) == in_files or action != "join", f"died before change {nth}"
        assert verify(out).findings == (), f"died before change {nth}"
        # The next writer finishes the join, or begins it again.
        more = later(logs)
        step(out, more)
        assert verify(out).findings == (), f"died before change {nth}"
        join(out)
        archive = read_archive(out)
        assert len(archive.commits) == 1
        assert {one: rows_of(archive, one) for one in more} == {
            one: list(log.rows.values()) for one, log in more.items()
        }
        assert verify(out).findings == ()
        assert not [path for path in (out / "_staging").rglob("*") if path.is_file()]
        shutil.rmtree(out)
        if ended == 0:
            break
    assert nth > 40
    assert seen == {1, 3}


def _run(program: subprocess.Popen[str], folder: Path, nth: int, action: str) -> int:
    assert program.stdin is not None
    assert program.stdout is not None
    print(f"{nth} {action} {folder}", file=program.stdin, flush=True)
    ended = int(program.stdout.readline())
    assert ended in (0, DIED)
    return ended
