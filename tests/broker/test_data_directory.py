"""The data directory seen from outside: last run, file system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker import data_directory
from broker.data_directory import file_system_of

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2
31 30 0:27 / /home/me/local rw - tmpfs tmpfs rw
32 22 0:28 / /mnt/my\\040share rw master:3 - cifs //server/share rw
33 22 0:29 / /var/lib/x rw - nfs server:/x rw
34 22 0:30 / /var/lib/x rw - overlay overlay rw
not a mount line
"""


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
    directory = os.open(tmp_path, os.O_RDONLY)
    data_directory.write_run(directory, tmp_path, run)
    os.close(directory)
    assert data_directory.last_run(tmp_path) == run
    (tmp_path / "last-run.json").write_text("{")
    assert data_directory.last_run(tmp_path) is None
