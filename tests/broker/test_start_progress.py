"""A start that recovers many partitions shows progress, continues where one was killed, and is not taken for silent."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from broker.local import spawn_broker
from broker.storage import StorageError
from broker.storage.segments import recovery
from tests.harness.stores import FaultyOps, append, open_log, topic_log

PARTITIONS = 1200


def written(path: Path) -> None:
    log = open_log(path, durability="process")
    log.create_topic("t", PARTITIONS, {})
    for index in range(PARTITIONS):
        append(topic_log(log, index=index), b"x")
    log.flush()
    log.close(clean=False)


def test_a_killed_recovery_makes_progress(tmp_path: Path) -> None:
    written(tmp_path)
    recovered = PARTITIONS
    attempts = 0
    while recovered > 500:
        attempts += 1
        try:
            log = open_log(tmp_path, durability="process", file_ops=FaultyOps(60 * attempts))
        except StorageError:
            continue
        recovered = len(log.recovered)
        log.close(clean=False)
    assert attempts > 1
    log = open_log(tmp_path)
    assert all(topic_log(log, index=index).log_end_offset == 1 for index in range(PARTITIONS))
    log.close()


def test_a_start_without_its_store_makes_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recovery, "PROGRESS_SECONDS", 0.0)
    caplog.set_level(logging.INFO, recovery.progress.name)
    log = open_log(tmp_path)
    log.create_topic("t", 3, {})
    for index in range(3):
        append(topic_log(log, index=index), b"x")
    log.flush()
    log.close()
    (tmp_path / "store.db").unlink()
    open_log(tmp_path, accept_loss=True).close()
    assert len([line for line in caplog.messages if line.startswith("reading all segments: now ")]) == 3


def test_progress_is_logged_and_shown_and_is_no_warning(tmp_path: Path) -> None:
    written(tmp_path)
    arguments = ["--data-dir", str(tmp_path), "--listen", "127.0.0.1:0", "--durability", "process"]
    shown: list[str] = []
    process, _, warnings = spawn_broker(arguments, tmp_path, keep_stdin=True, show_progress=shown.append)
    process.terminate()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()
    assert "recovered 1000 of 1200 partitions" in (tmp_path / "broker.log").read_text()
    assert any(" of 1200 partitions" in line for line in shown)
    assert warnings == []
