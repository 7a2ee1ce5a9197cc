"""A daemon with standard streams that are closed or cannot be written."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.local import broker_command, broker_environment
from tests.harness.broker_program import eventually, started


def close_stderr() -> None:
    os.close(2)


def fill_the_disk() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 2)


def break_the_pipe() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 2)


def make_it_read_only() -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 2)


def fill_a_pipe_that_does_not_block() -> None:
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.dup2(writer, 2)


def close_all() -> None:
    os.closerange(0, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize(
    "spoil",
    [close_stderr, fill_the_disk, break_the_pipe, make_it_read_only, fill_a_pipe_that_does_not_block, close_all],
)
@pytest.mark.parametrize("arguments", [["--data-dir", "."], ["--nonsense"]])
def test_an_unwritable_stderr_leaves_the_exit_code_unchanged(
    tmp_path: Path, spoil: Callable[[], None], arguments: list[str]
):
    (tmp_path / "thesis.tex").touch()
    ended = subprocess.run(
        [*broker_command(), *arguments],
        cwd=tmp_path,
        env=broker_environment(),
        preexec_fn=spoil,
        stdin=None,
        check=False,
    )
    assert ended.returncode == (2 if "--nonsense" in arguments else 17)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("background", [False, True])
def test_closed_streams_are_not_taken_by_files_of_the_broker(tmp_path: Path, background: bool):
    with started(tmp_path, *["--background"] * background, preexec_fn=close_all) as program:
        program.ready()
        streams = Path(f"/proc/{program.pid}/fd")
        expected = str(tmp_path / "broker.log") if background else os.devnull
        eventually(lambda: os.readlink(streams / "2") == expected, f"stderr to be {expected}")
        assert [os.readlink(streams / str(number)) for number in (0, 1)] == [os.devnull] * 2
        program.process.terminate()
        assert program.end()[0] == 0
