"""Ready files: written atomically, only where no other user can replace them, and removed only by their writer."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from broker.ready_file import ReadyFile, UnsafeReadyFileError, read_ready
from tests.harness.ready_files import a_ready, put_ready

OTHER_USER = 12345


def test_a_ready_file_is_written_atomically_and_read_back(tmp_path: Path):
    path = tmp_path / "ready.json"
    file = ReadyFile.in_safe_directory(path)
    file.write(a_ready(1, tmp_path))
    file.write(a_ready(2, tmp_path))
    assert read_ready(path) == a_ready(2, tmp_path)
    assert [found.name for found in tmp_path.iterdir()] == ["ready.json"]
    file.remove()
    file.remove()
    assert read_ready(path) is None


def test_the_ready_file_of_another_broker_is_not_removed(tmp_path: Path):
    path = tmp_path / "ready.json"
    file = ReadyFile.in_safe_directory(path)
    file.write(a_ready(1, tmp_path))
    ReadyFile.in_safe_directory(path).write(a_ready(2, tmp_path))
    file.remove()
    assert read_ready(path) == a_ready(2, tmp_path)


def test_a_ready_file_stays_in_the_directory_that_was_opened(tmp_path: Path):
    (tmp_path / "d").mkdir()
    file = ReadyFile.in_safe_directory(tmp_path / "d" / "r")
    (tmp_path / "d").rename(tmp_path / "moved")
    (tmp_path / "d").mkdir()
    put_ready(tmp_path / "d" / "r", a_ready(2, tmp_path))
    file.write(a_ready(1, tmp_path))
    file.remove()
    assert read_ready(tmp_path / "d" / "r") == a_ready(2, tmp_path)
    assert list((tmp_path / "moved").iterdir()) == []


def test_a_ready_file_replaces_a_link_and_leaves_its_target_unchanged(tmp_path: Path):
    (tmp_path / "precious").write_text("x")
    (tmp_path / "r").symlink_to(tmp_path / "precious")
    ReadyFile.in_safe_directory(tmp_path / "r").write(a_ready(1, tmp_path))
    assert read_ready(tmp_path / "r") == a_ready(1, tmp_path)
    assert (tmp_path / "precious").read_text() == "x"


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (0o700, None),
        (0o755, None),
        (0o775, None),
        (0o1777, None),
        (0o777, "every user may replace files"),
        (0o702, "every user may replace files"),
    ],
)
def test_a_ready_file_is_refused_where_every_user_can_replace_it(tmp_path: Path, mode: int, reason: str | None):
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(mode)
    if reason is None:
        ReadyFile.in_safe_directory(tmp_path / "d" / "r").write(a_ready(1, tmp_path))
    else:
        with pytest.raises(UnsafeReadyFileError, match=reason):
            ReadyFile.in_safe_directory(tmp_path / "d" / "r")


def test_an_own_file_in_a_sticky_directory_is_replaced(tmp_path: Path):
    tmp_path.chmod(0o1777)
    put_ready(tmp_path / "r", a_ready(1, tmp_path))
    ReadyFile.in_safe_directory(tmp_path / "r").write(a_ready(2, tmp_path))
    assert read_ready(tmp_path / "r") == a_ready(2, tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(
    ("foreign", "reason"), [("", "the directory belongs to another user"), ("r", "it exists and belongs to another")]
)
def test_a_directory_or_file_of_another_user_is_refused(tmp_path: Path, foreign: str, reason: str):
    (tmp_path / "d").mkdir(mode=0o1777)
    (tmp_path / "d" / "r").touch()
    os.chown(tmp_path / "d" / foreign, OTHER_USER, -1)
    with pytest.raises(UnsafeReadyFileError, match=reason):
        ReadyFile.in_safe_directory(tmp_path / "d" / "r")


@pytest.mark.parametrize("content", ["precious", "{}", None])
@pytest.mark.parametrize("is_there_first", [True, False])
def test_a_ready_file_replaces_nothing_but_ready_files(tmp_path: Path, content: str | None, is_there_first: bool):
    path = tmp_path / "r"

    def put() -> None:
        os.mkfifo(path) if content is None else path.write_text(content)

    if is_there_first:
        put()
        with pytest.raises(UnsafeReadyFileError, match="is not a ready file"):
            ReadyFile.in_safe_directory(path)
    else:
        file = ReadyFile.in_safe_directory(path)
        put()
        with pytest.raises(UnsafeReadyFileError, match="is not a ready file"):
            file.write(a_ready(1, tmp_path))
        file.remove()
    assert path.is_fifo() if content is None else path.read_text() == content


def test_a_ready_file_replaces_an_empty_file(tmp_path: Path):
    (tmp_path / "r").touch()
    ReadyFile.in_safe_directory(tmp_path / "r").write(a_ready(1, tmp_path))
    assert read_ready(tmp_path / "r") == a_ready(1, tmp_path)


def test_unknown_fields_of_a_ready_file_are_ignored(tmp_path: Path):
    path = tmp_path / "ready.json"
    path.write_text(json.dumps({**asdict(a_ready(1, tmp_path)), "mood": "good"}))
    assert read_ready(path) == a_ready(1, tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"address": "x"}', "\xff"])
def test_a_broken_ready_file_counts_as_none(tmp_path: Path, text: str):
    path = tmp_path / "ready.json"
    path.write_bytes(text.encode("latin-1"))
    assert read_ready(path) is None


def test_a_ready_file_with_a_data_directory_that_is_no_text_counts_as_none(tmp_path: Path):
    path = tmp_path / "ready.json"
    path.write_text(json.dumps({**asdict(a_ready(1, tmp_path)), "data_dir": 5}))
    assert read_ready(path) is None


def test_a_pipe_in_place_of_a_ready_file_does_not_block_its_reader(tmp_path: Path):
    os.mkfifo(tmp_path / "ready.json")
    assert read_ready(tmp_path / "ready.json") is None
