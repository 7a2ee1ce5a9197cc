"""Steps of an archive whose writer dies at any file system call: the next one continues with nothing lost and nothing twice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgctl.pipelines.archive.manifest import read_archive
from kgctl.pipelines.archive.verifying import verify
from tests.kgctl.pipelines.archive.dying import DIED, LOGS, later
from tests.kgctl.pipelines.archive.model import step
from tests.kgctl.pipelines.archive.reading import rows_of

pytestmark = pytest.mark.slow
MAX_CALLS = 500


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
    for nth in range(1, MAX_CALLS):
        shutil.copytree(before, out)
        ended = _run(program, out, nth)
        found = read_archive(out)
        counts = {one: len(rows_of(found, one)) for one in LOGS}
        assert counts in (first, {one: len(log.rows) for one, log in logs.items()}), f"died before call {nth}"
        seen.add(len(found.commits))
        step(out, logs)
        archive = read_archive(out)
        assert {one: rows_of(archive, one) for one in logs} == {
            one: list(log.rows.values()) for one, log in logs.items()
        }
        assert verify(out).findings == (), f"died before call {nth}"
        assert archive.ends() == {one: log.end for one, log in logs.items()}
        shutil.rmtree(out)
        if ended == 0:
            break
    assert nth > 20
    assert seen == {1, 2}


def _run(program: subprocess.Popen[str], folder: Path, nth: int) -> int:
    assert program.stdin is not None
    assert program.stdout is not None
    print(f"{nth} {folder}", file=program.stdin, flush=True)
    ended = int(program.stdout.readline())
    assert ended in (0, DIED)
    return ended
