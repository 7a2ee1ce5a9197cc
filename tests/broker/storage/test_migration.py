"""Directories that earlier versions wrote open, with everything that they hold, and are then of the newest format."""

from __future__ import annotations

import tarfile
from pathlib import Path

import apsw
import pytest

from broker.storage.store.database import FORMAT_VERSION
from tests.harness.stores import append, open_log, topic_log, values

# Killed while it wrote to partition 0, after a clean stop.
FORMAT_4 = Path(__file__).with_name("format_4.tar.xz")
SMALL = {"segment_bytes": 700}


@pytest.fixture
def format_4(tmp_path: Path) -> Path:
    with tarfile.open(FORMAT_4) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "store"


def version(path: Path) -> object:
    with apsw.Connection(str(path / "store.db"), flags=apsw.SQLITE_OPEN_READONLY) as db:
        return db.execute("PRAGMA user_version").fetchall()[0][0]


@pytest.mark.parametrize("clean", [True, False])
def test_a_store_of_format_4_is_migrated_and_keeps_its_records(format_4: Path, clean: bool) -> None:
    for run in range(3):
        log = open_log(format_4, **SMALL)
        assert log.losses == []
        for index, (name, count) in enumerate([(b"value", 16), (b"other", 12)]):
            found = values(topic_log(log, index=index))
            assert found[:count] == [(offset, b"%s %03d" % (name, offset) * 3) for offset in range(count)]
            assert found[count:] == [(count + number, b"new %d" % number) for number in range(run)]
            append(topic_log(log, index=index), b"new %d" % run)
        log.flush()
        log.close(clean=clean)
    open_log(format_4, **SMALL).close()
    assert version(format_4) == FORMAT_VERSION
