"""The log file of the daemon: a maximum size, and a few rotated files."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.server.log_file import MOST_WARNINGS, WARNINGS_S, RotatingLog, Sparing
from tests.harness.descriptors import no_descriptors


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RotatingLog]:
    handler = RotatingLog(tmp_path / "x.log", max_bytes=10, old_files=2)
    yield handler
    handler.close()


def write(handler: RotatingLog, text: str) -> None:
    handler.emit(logging.LogRecord("x", logging.INFO, "", 0, text, None, None))


def contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def test_a_log_file_is_rotated_at_its_limit(tmp_path: Path, log: RotatingLog):
    write(log, "12345678")
    write(log, "9")
    assert contents(tmp_path) == {"x.log": "12345678\n9\n"}
    write(log, "next")
    assert contents(tmp_path) == {"x.log": "next\n", "x.log.1": "12345678\n9\n"}


def test_the_oldest_file_is_dropped(tmp_path: Path, log: RotatingLog):
    for number in range(1, 5):
        write(log, f"{number}234567890")
    assert contents(tmp_path) == {"x.log": "4234567890\n", "x.log.1": "3234567890\n", "x.log.2": "2234567890\n"}


def test_a_log_file_that_cannot_be_rotated_is_continued(tmp_path: Path, log: RotatingLog):
    write(log, "1234567890")
    with no_descriptors():
        for line in ("a", "b", "c"):
            write(log, line)
    assert contents(tmp_path) == {"x.log": "1234567890\na\nb\nc\n"}
    write(log, "next")
    assert contents(tmp_path) == {"x.log": "next\n", "x.log.1": "1234567890\na\nb\nc\n"}


def test_a_file_from_an_earlier_run_is_continued(tmp_path: Path):
    (tmp_path / "x.log").write_text("0123456789")
    handler = RotatingLog(tmp_path / "x.log", max_bytes=10, old_files=2)
    write(handler, "new")
    handler.close()
    assert contents(tmp_path) == {"x.log": "new\n", "x.log.1": "0123456789"}


def test_stderr_follows_the_file_through_a_rotation(tmp_path: Path):
    code = (
        "import logging, os, pathlib, sys; from broker.server.log_file import RotatingLog\n"
        "log = RotatingLog(pathlib.Path(sys.argv[1]), max_bytes=10); log.take_stderr(); os.write(2, b'0123456789')\n"
        "log.emit(logging.LogRecord('x', 20, '', 0, 'new', None, None)); os.write(2, b'after')"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "x.log")], check=True)
    assert contents(tmp_path) == {"x.log": "new\nafter", "x.log.1": "0123456789"}


def test_warnings_that_repeat_are_left_out_and_counted():
    sparing = Sparing()
    shown: list[str] = []

    def warn(at: float, host: str, level: int = logging.WARNING) -> None:
        record = logging.LogRecord("x", level, "", 0, "refused %s: %s", (host, "why"), None)
        record.created = at
        if sparing.filter(record):
            shown.append(record.getMessage())

    for _ in range(MOST_WARNINGS + 7):
        warn(100, "a")
    warn(100, "b")
    warn(100, "a", logging.ERROR)
    assert shown == ["refused a: why"] * MOST_WARNINGS + ["refused b: why", "refused a: why"]
    warn(100 + WARNINGS_S, "a")
    warn(100 + WARNINGS_S, "a")
    assert shown[-2:] == ["refused a: why (7 lines like this are left out)", "refused a: why"]
