"""One process at a time makes a class-data archive, and one that is killed does not prevent the next."""

from __future__ import annotations

import os
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from kgctl.pipelines.spark.fast_start import attempts, class_archive
from kgctl.pipelines.spark.java import find_java

DAY_S = 86400


def age(path: Path, seconds: float) -> None:
    at = time.time() - seconds
    os.utime(path, (at, at))


def test_one_process_at_a_time_and_three_attempts_a_day(tmp_path: Path) -> None:
    claim = attempts.claim_file(tmp_path, "key")
    for _ in range(3):
        lock = attempts.begin(claim)
        assert lock is not None
        assert attempts.begin(claim) is None
        os.close(lock)
    assert attempts.begin(claim) is None
    age(claim, DAY_S + 60)
    lock = attempts.begin(claim)
    assert lock is not None
    os.close(lock)


def test_after_success_nothing_is_left_and_after_giving_up_a_day_passes(tmp_path: Path) -> None:
    claim = attempts.claim_file(tmp_path, "key")
    lock = attempts.begin(claim)
    assert lock is not None
    attempts.succeed(claim)
    assert list(tmp_path.iterdir()) == []
    os.close(lock)
    attempts.give_up(claim)
    assert attempts.begin(claim) is None


@pytest.mark.parametrize("content", ["", "\N{SUPERSCRIPT TWO}", "-1", "\0" * 9])
def test_a_damaged_file_counts_from_the_start(tmp_path: Path, content: str) -> None:
    claim = attempts.claim_file(tmp_path, "key")
    claim.write_text(content)
    lock = attempts.begin(claim)
    assert lock is not None
    os.close(lock)
    assert claim.read_text() == "1"


def test_without_a_cache_nothing_begins(tmp_path: Path) -> None:
    assert attempts.begin(attempts.claim_file(tmp_path / "missing", "key")) is None


def test_what_killed_attempts_left_behind_is_deleted(tmp_path: Path) -> None:
    for name, seconds in (("old", 2 * 3600), ("new", 60)):
        folder = tmp_path / f"{attempts.FOLDER_PREFIX}{name}"
        folder.mkdir()
        (folder / "classes").write_bytes(b"half")
        age(folder, seconds)
    for key, seconds in (("old", DAY_S + 60), ("new", 2 * 3600)):
        claim = attempts.claim_file(tmp_path, key)
        claim.write_text("1")
        age(claim, seconds)
    attempts.remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{attempts.FOLDER_PREFIX}new",
        attempts.claim_file(tmp_path, "new").name,
    }


@pytest.mark.skipif(find_spec("pyspark") is None, reason="Spark is not installed")
def test_the_next_run_makes_the_archive_if_a_process_that_made_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGCTL_CACHE", str(tmp_path))
    monkeypatch.setenv("KGCTL_CLASS_ARCHIVE", "on")
    java = find_java()
    for _ in range(2):
        assert class_archive.make_in_background(java)
        assert not class_archive.make_in_background(java)
        process = class_archive._BACKGROUND.pop()
        process.kill()
        process.wait()
