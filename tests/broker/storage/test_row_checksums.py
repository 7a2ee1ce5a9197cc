"""A row that has changed between its page and its reader, so that no page's checksum tells, is named and not served."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.storage import OFFSETS_TOPIC, DamageError, FileOps, TopicRow
from broker.storage.failure import Failure
from broker.storage.files import Files
from broker.storage.store.database import Store
from tests.broker.storage.stores import open_log

KEY = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00"  # the offset of group g for partition 0 of topic t
PARTITION = 3


@pytest.mark.parametrize("change", ["value = x'00ff'", "timestamp = timestamp + 1", "partition = partition + 1"])
def test_a_changed_row_of_the_coordinator_is_named_to_whoever_reads_it(tmp_path: Path, change: str) -> None:
    log = open_log(tmp_path)
    log.append_rows(OFFSETS_TOPIC, [TopicRow(PARTITION, KEY, b"\x00\x03", 5)])
    log.flush()
    log.close()
    store = Store(Files(FileOps(), durable=True, limit=8), str(tmp_path), Failure(), accept_loss=False)
    store.execute(f"UPDATE offsets_log SET {change}")
    store.close()
    log = open_log(tmp_path)
    with pytest.raises(DamageError, match=r"__consumer_offsets-. at offset 0 fails its checksum"):
        log.groups.offset_rows("g")
    log.close()


def test_an_unchanged_row_is_served(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_rows(OFFSETS_TOPIC, [TopicRow(PARTITION, KEY, b"\x00\x03", 5)])
    log.flush()
    log.close()
    log = open_log(tmp_path)
    assert log.groups.offset_rows("g") == [TopicRow(PARTITION, KEY, b"\x00\x03", 5)]
    log.close()
