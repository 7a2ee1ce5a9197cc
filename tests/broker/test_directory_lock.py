"""The lock of a data directory: its holder, ready files of dead brokers, and a directory that was replaced."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.directory_lock import HeldError, Hold, find_holder, hold, holder_pid, remove_stale_ready, running
from tests.harness.ready_files import a_ready, put_ready

HOLD = (
    "import sys, pathlib; from broker.directory_lock import hold; held = hold(pathlib.Path(sys.argv[1]))\n"
    "print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def holder(tmp_path: Path):
    """Another process that holds the lock of tmp_path."""
    program = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"held\n"
    yield program
    program.kill()
    program.communicate()


@pytest.fixture
def held(tmp_path: Path):
    """A directory `d` that this process holds."""
    (tmp_path / "d").mkdir()
    held = hold(tmp_path / "d")
    yield held
    held.close()


def test_a_held_directory_names_its_holder(tmp_path: Path, holder: subprocess.Popen[bytes]):
    assert holder_pid(tmp_path) == holder.pid
    with pytest.raises(HeldError, match=f"pid {holder.pid}, not serving yet"):
        hold(tmp_path)


def test_a_holder_that_serves_is_named_with_its_address(tmp_path: Path, holder: subprocess.Popen[bytes]):
    ready = a_ready(holder.pid, tmp_path)
    put_ready(tmp_path / "ready.json", ready)
    assert running(tmp_path) == ready
    with pytest.raises(HeldError, match=rf"pid {holder.pid}, at 127\.0\.0\.1:9092"):
        hold(tmp_path)


def test_a_killed_holder_releases_the_directory_and_its_ready_file_is_stale(
    tmp_path: Path, holder: subprocess.Popen[bytes]
):
    put_ready(tmp_path / "ready.json", a_ready(holder.pid, tmp_path))
    holder.kill()
    holder.wait()
    assert find_holder(tmp_path) is None
    assert running(tmp_path) is None
    held = hold(tmp_path)
    assert holder_pid(tmp_path) == os.getpid()
    held.close()
    assert holder_pid(tmp_path) is None


def test_looking_for_the_holder_creates_nothing(tmp_path: Path):
    assert find_holder(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_its_lock_file_is_still_held(tmp_path: Path, holder: subprocess.Popen[bytes]):
    put_ready(tmp_path / "ready.json", a_ready(holder.pid, tmp_path))
    (tmp_path / "lock").unlink()
    with pytest.raises(HeldError, match=f"a process that {tmp_path}/lock does not name"):
        hold(tmp_path)
    remove_stale_ready(tmp_path / "ready.json")
    assert (tmp_path / "ready.json").exists()
    assert not (tmp_path / "lock").exists()
    (tmp_path / "lock").write_text("a copy")
    with pytest.raises(HeldError, match=f"a process that {tmp_path}/lock does not name"):
        hold(tmp_path)
    remove_stale_ready(tmp_path / "ready.json")
    assert (tmp_path / "ready.json").exists()


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path):
    (tmp_path / "precious").write_text("x")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match=f"{tmp_path}/lock"):
        hold(tmp_path)
    assert (tmp_path / "precious").read_text() == "x"


def test_a_lock_that_is_a_pipe_does_not_block(tmp_path: Path):
    os.mkfifo(tmp_path / "lock")
    assert find_holder(tmp_path) is None


def test_a_directory_that_stays_is_not_lost(held: Hold):
    assert held.lost() is None


def remove(path: Path) -> None:
    shutil.rmtree(path)


def move(path: Path) -> None:
    path.rename(path.with_name("moved"))


def put_another(path: Path) -> None:
    move(path)
    path.mkdir()
    hold(path).close()


def put_a_copy(path: Path) -> None:
    """A copy of hard links: its lock is the same file."""
    move(path)
    path.mkdir()
    os.link(path.with_name("moved") / "lock", path / "lock")


def unlock(path: Path) -> None:
    (path / "lock").unlink()


def put_another_lock(path: Path) -> None:
    shutil.copy(path / "lock", path / "copy")
    (path / "copy").rename(path / "lock")


def link_the_lock(path: Path) -> None:
    (path / "lock").rename(path / "other")
    (path / "lock").symlink_to("other")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove, "the data directory {} was removed or renamed"),
        (move, "the data directory {} was removed or renamed"),
        (put_another, "another directory took the place of the data directory {};"),
        (put_a_copy, "another directory took the place of the data directory {};"),
        (unlock, "{}/lock was removed"),
        (put_another_lock, "another file took the place of {}/lock"),
        (link_the_lock, "another file took the place of {}/lock"),
    ],
)
def test_a_removed_or_replaced_directory_or_lock_is_noticed(
    tmp_path: Path, held: Hold, change: Callable[[Path], None], message: str
):
    change(tmp_path / "d")
    lost = held.lost()
    assert lost is not None
    assert lost.startswith(message.format(tmp_path / "d"))


def test_a_link_that_leads_elsewhere_is_noticed(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("one")
    held = hold(tmp_path / "link")
    assert held.lost() is None
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("two")
    assert "another directory took the place" in str(held.lost())
    held.close()


@pytest.mark.parametrize("data_dir", ["/nonexistent", "\0", "/dev/null", ""])
def test_a_ready_file_that_names_no_directory_is_stale(tmp_path: Path, data_dir: str):
    put_ready(tmp_path / "r", a_ready(1, Path(data_dir)))
    remove_stale_ready(tmp_path / "r")
    assert not (tmp_path / "r").exists()
