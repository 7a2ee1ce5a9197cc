"""The data directory seen from outside: lock, ready file, last run, file system."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from broker import data_directory
from broker.data_directory import HeldError, Ready, file_system_of

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2
31 30 0:27 / /home/me/local rw - tmpfs tmpfs rw
32 22 0:28 / /mnt/my\\040share rw master:3 - cifs //server/share rw
33 22 0:29 / /var/lib/x rw - nfs server:/x rw
34 22 0:30 / /var/lib/x rw - overlay overlay rw
not a mount line
"""

HOLD = "import sys, pathlib; from broker import data_directory as d; d.hold(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"


def a_ready(pid: int, data_dir: Path) -> Ready:
    return Ready(
        address="127.0.0.1:9092",
        pid=pid,
        data_dir=str(data_dir),
        log_file=str(data_dir / "broker.log"),
        durability="power",
        started_ms=1,
        unimplemented_options=["num.io.threads"],
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


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/homestead", "ext4"),
        ("/home", "nfs4"),
        ("/home/me", "nfs4"),
        ("/home/me/local", "tmpfs"),
        ("/home/me/local/broker", "tmpfs"),
        ("/home/me/locals", "nfs4"),
        ("/mnt/my share/broker", "cifs"),
        ("/var/lib/x", "overlay"),
    ],
)
def test_the_file_system_is_that_of_the_nearest_and_latest_mount(path: str, kind: str):
    assert file_system_of(path, MOUNTS) == kind


def test_without_mounts_the_file_system_is_unknown():
    assert file_system_of("/x", "") is None


def test_the_temporary_directory_is_on_a_local_file_system(tmp_path: Path):
    assert data_directory.network_file_system(tmp_path) is None


def test_a_held_directory_names_its_holder(tmp_path: Path, holder: subprocess.Popen[bytes]):
    assert data_directory.holder_pid(tmp_path) == holder.pid
    with pytest.raises(HeldError, match=f"pid {holder.pid}, not serving yet"):
        data_directory.hold(tmp_path)


def test_a_holder_that_serves_is_named_with_its_address(tmp_path: Path, holder: subprocess.Popen[bytes]):
    ready = a_ready(holder.pid, tmp_path)
    data_directory.write_ready(tmp_path / data_directory.READY_NAME, ready)
    assert data_directory.running(tmp_path) == ready
    with pytest.raises(HeldError, match=rf"pid {holder.pid}, at 127\.0\.0\.1:9092"):
        data_directory.hold(tmp_path)


def test_a_killed_holder_releases_the_directory_and_its_ready_file_is_stale(
    tmp_path: Path, holder: subprocess.Popen[bytes]
):
    data_directory.write_ready(tmp_path / data_directory.READY_NAME, a_ready(holder.pid, tmp_path))
    holder.kill()
    holder.wait()
    assert data_directory.holder_pid(tmp_path) is None
    assert data_directory.running(tmp_path) is None
    lock = data_directory.hold(tmp_path)
    assert data_directory.holder_pid(tmp_path) == os.getpid()
    os.close(lock)
    assert data_directory.holder_pid(tmp_path) is None


def test_looking_for_the_holder_creates_nothing(tmp_path: Path):
    assert data_directory.holder_pid(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_ready_file_is_written_atomically_and_read_back(tmp_path: Path):
    path = tmp_path / "ready.json"
    data_directory.write_ready(path, a_ready(1, tmp_path))
    data_directory.write_ready(path, a_ready(2, tmp_path))
    assert data_directory.read_ready(path) == a_ready(2, tmp_path)
    assert [found.name for found in tmp_path.iterdir()] == ["ready.json"]
    data_directory.remove_ready(path)
    data_directory.remove_ready(path)
    assert data_directory.read_ready(path) is None


def test_unknown_fields_of_a_ready_file_are_ignored(tmp_path: Path):
    path = tmp_path / "ready.json"
    path.write_text(json.dumps({**asdict(a_ready(1, tmp_path)), "mood": "good"}))
    assert data_directory.read_ready(path) == a_ready(1, tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"address": "x"}', "\xff"])
def test_a_broken_ready_file_counts_as_none(tmp_path: Path, text: str):
    path = tmp_path / "ready.json"
    path.write_bytes(text.encode("latin-1"))
    assert data_directory.read_ready(path) is None


def test_the_default_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/x")
    assert data_directory.default_data_dir() == Path("/x/kgctl/broker")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert data_directory.default_data_dir() == Path("/home/me/.local/share/kgctl/broker")


@pytest.mark.parametrize(
    ("names", "foreign"),
    [
        ([], False),
        (["lost+found"], False),
        (["lock", "broker.log", "broker.log.1", "ready.json"], False),
        (["lock", "notes.txt"], True),
        (["store.db", "notes.txt"], False),
        (["segments"], False),
        (["commit-marker"], False),
        (["watermark"], False),
    ],
)
def test_a_directory_with_only_other_files_is_foreign(tmp_path: Path, names: list[str], foreign: bool):
    for name in names:
        (tmp_path / name).touch()
    assert data_directory.is_foreign(tmp_path) is foreign


def test_the_last_run_is_recorded(tmp_path: Path):
    assert data_directory.last_run(tmp_path) is None
    run = data_directory.Run(pid=7, started_ms=1)
    data_directory.write_run(tmp_path, run)
    assert data_directory.last_run(tmp_path) == run
    (tmp_path / "last-run.json").write_text("{")
    assert data_directory.last_run(tmp_path) is None
