"""Directories that earlier versions wrote open, with everything that they hold, and are then of the newest format."""

from __future__ import annotations

import tarfile
from pathlib import Path

import apsw
import pytest

from broker.storage import AbortedTransaction
from broker.storage.store.database import FORMAT_VERSION
from tests.harness.stores import append, open_log, topic_log, values

# Killed while it wrote to partition 0, after a clean stop.
ARCHIVES = ["format_4", "format_5", "format_6", "format_7", "format_8"]
SMALL = {"segment_bytes": 700}


@pytest.fixture(params=ARCHIVES)
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(Path(__file__).with_name(f"{request.param}.tar.xz")) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "store"


def version(path: Path) -> object:
    with apsw.Connection(str(path / "store.db"), flags=apsw.SQLITE_OPEN_READONLY) as db:
        return db.execute("PRAGMA user_version").fetchall()[0][0]


@pytest.mark.parametrize("clean", [True, False])
def test_a_store_of_an_older_format_is_migrated_and_keeps_its_records(older: Path, clean: bool) -> None:
    for run in range(3):
        log = open_log(older, **SMALL)
        assert log.losses == []
        for index, (name, count) in enumerate([(b"value", 16), (b"other", 12)]):
            found = values(topic_log(log, index=index))
            assert found[:count] == [(offset, b"%s %03d" % (name, offset) * 3) for offset in range(count)]
            assert found[count:] == [(count + number, b"new %d" % number) for number in range(run)]
            append(topic_log(log, index=index), b"new %d" % run)
        assert len(log.security_records.all("acls")) == run
        log.security_records.put("acls", f"{run}", "value")
        log.flush()
        log.close(clean=clean)
    open_log(older, **SMALL).close()
    assert version(older) == FORMAT_VERSION


@pytest.mark.parametrize("older", ["format_7"], indirect=True)
def test_aborted_transactions_are_migrated(older: Path) -> None:
    log = open_log(older, **SMALL)
    partition = topic_log(log, "x")
    # Of producer 1 from 0 to 296, of producer 2 meanwhile; that of producer 3 is open.
    first, second, third = (AbortedTransaction(2, offset) for offset in (1, 3, 54))
    whole = AbortedTransaction(1, 0)
    assert (partition.last_stable_offset, partition.high_watermark) == (297, 298)
    assert partition.aborted_transactions(0, 298) == [first, second, third, whole]
    assert partition.aborted_transactions(10, 20) == [second, whole]
    assert partition.aborted_transactions(60, 70) == [third, whole]
    assert partition.aborted_transactions(296, 297) == [whole]
    assert partition.aborted_transactions(297, 298) == []
    log.close()
