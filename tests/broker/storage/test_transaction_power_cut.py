"""After a power cut or a kill at any moment, each transaction over two partitions is wholly committed or wholly aborted.

So it is with --accept-loss, which every other start has.

The rows of __transaction_state stand for the coordinator: the row of a commit or an abort is part of the flush of its markers.
"""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.control_records import Marker
from broker.storage import TRANSACTIONS_TOPIC, Appended, Log, StorageError, TopicRow
from tests.broker.storage.power import RecordingOps
from tests.harness.committed_reader import committed, uncommitted
from tests.harness.stores import NOW, FaultyOps, append, batch, open_log, sweep, topic_log

SETTINGS: dict[str, Any] = {"segment_bytes": 900, "compaction_interval_ms": 0}
PRODUCERS = (21, 22)
TRANSACTIONS = 30
PARTITIONS = 2
IMAGES, KILLS, KILLED_STARTS = 16, 8, 8
LAST_STEPS = 25  # of a start, in which it commits


def begin(log: Log, number: int, records: int) -> None:
    """Write the records of a transaction to both partitions; the coordinator has it as ongoing."""
    producer = PRODUCERS[number % 2]
    state(log, producer, number, "ongoing")
    for index in range(PARTITIONS):
        for sequence in range(records):
            content = batch(
                b"%d/%d" % (number, sequence),
                producer_id=producer,
                producer_epoch=number // 2,
                base_sequence=sequence,
                is_transactional=True,
            )
            assert isinstance(topic_log(log, "t", index).append(content, wall_ms=NOW), Appended)
            if sequence == 0:
                append(topic_log(log, "t", index), b"plain")


def end(log: Log, number: int) -> None:
    producer, is_commit = PRODUCERS[number % 2], number % 3 != 0
    marker = Marker(producer, number // 2 + 1, 0, is_commit)
    for index in range(PARTITIONS):
        assert isinstance(topic_log(log, "t", index).append_marker(marker, wall_ms=NOW), Appended)
    state(log, producer, number, "committed" if is_commit else "aborted")


def state(log: Log, producer: int, number: int, name: str) -> None:
    log.append_rows(TRANSACTIONS_TOPIC, [TopicRow(producer, b"%d" % producer, b"%d %s" % (number, name.encode()), NOW)])


def run(log: Log, ops: RecordingOps | None = None) -> None:
    """Overlapping transactions of two producers; several flushes each. What is acknowledged is noted."""
    topic_log(log, "t", 1)
    log.flush()

    def flush(what: str) -> None:
        log.flush()
        if ops is not None:
            ops.acknowledge(what)

    for number in range(TRANSACTIONS):
        begin(log, number, 1 + number % 3)
        if number % 4:
            flush(f"ongoing {number}")
        if number:
            end(log, number - 1)
            flush(f"ended {number - 1}")
        if number % 10 == 9:
            sweep(log)


def check(path: Path, acknowledged: int, *, accept_loss: bool = False) -> None:
    """`acknowledged`: the last transaction whose end was."""
    log = open_log(path, accept_loss=accept_loss, **SETTINGS)
    assert accept_loss or log.losses == []
    topic_log(log, "t", PARTITIONS - 1)
    partitions = [topic_log(log, "t", index) for index in range(PARTITIONS)]
    known = {row.key: (row.value or b"").decode().split() for row in log.transactions.newest_rows()}
    ongoing = {int(key): int(number) for key, (number, name) in known.items() if name == "ongoing"}
    opened = set(log.open_transactions())
    assert opened == {("t", index, producer, n // 2) for producer, n in ongoing.items() for index in range(PARTITIONS)}
    ended = max([int(n) - (name == "ongoing") * 2 for n, name in known.values()], default=-1)
    assert ended >= acknowledged
    expected = [b"%d/%d" % (n, s) for n in range(ended + 1) if n % 3 for s in range(1 + n % 3)]
    for partition in partitions:
        found = [record.value for record in committed(partition) if record.value != b"plain"]
        # Records behind the last stable offset wait; transactions end in the order in which they begin.
        assert found == expected[: len(found)], (found, expected)
        if not ongoing:
            assert found == expected
    # The coordinator aborts what was ongoing: nothing hangs.
    for name, index, producer, epoch in opened:
        marker = Marker(producer, epoch + 1, 0, False)
        assert isinstance(topic_log(log, name, index).append_marker(marker, wall_ms=NOW), Appended)
    log.flush()
    for partition in partitions:
        assert partition.last_stable_offset == partition.high_watermark
        assert [r.value for r in committed(partition) if r.value != b"plain"] == expected
        assert {r.value for r in uncommitted(partition)} >= set(expected)
    log.close(clean=False)


def test_a_power_cut_leaves_each_transaction_whole(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    ops = RecordingOps(tmp_path / "live")
    log = open_log(tmp_path / "live", file_ops=ops, **SETTINGS)
    begun = len(ops.events)
    run(log, ops)
    log.close(clean=False)
    randomness = random.Random(3)
    for number in range(IMAGES):
        cut = randomness.randrange(begun, len(ops.events) + 1)
        ends = [
            int(path.split()[1]) for kind, path, _, _ in ops.events[:cut] if kind == "acknowledge" and "ended" in path
        ]
        ops.image(cut, tmp_path / "image", randomness)
        check(tmp_path / "image", ends[-1] if ends else -1, accept_loss=number % 2 == 1)
        shutil.rmtree(tmp_path / "image")


def test_a_killed_start_with_accepted_losses_loses_nothing_more(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    ops = RecordingOps(tmp_path / "live")
    log = open_log(tmp_path / "live", file_ops=ops, **SETTINGS)
    begun = len(ops.events)
    run(log, ops)
    log.close(clean=False)
    randomness = random.Random(4)
    for number in range(KILLED_STARTS):
        image, copy = tmp_path / f"image {number}", tmp_path / f"copy {number}"
        ops.image(randomness.randrange(begun, len(ops.events) + 1), image, randomness)
        shutil.copytree(image, copy)
        counting = FaultyOps()
        open_log(copy, accept_loss=True, file_ops=counting, **SETTINGS).close(clean=False)
        fail_at = max(1, counting.count - randomness.randrange(LAST_STEPS))
        with suppress(StorageError):
            open_log(image, accept_loss=True, file_ops=FaultyOps(fail_at=fail_at), **SETTINGS).close(clean=False)
        check(image, -1, accept_loss=True)


def test_a_kill_at_any_system_call_leaves_each_transaction_whole(tmp_path: Path) -> None:
    counting = FaultyOps()
    log = open_log(tmp_path / "counted", file_ops=counting, **SETTINGS)
    before = counting.count
    run(log)
    log.close(clean=False)
    randomness = random.Random(7)
    for number, fail_at in enumerate(sorted(randomness.sample(range(before, counting.count), KILLS))):
        path = tmp_path / str(number)
        log = open_log(path, file_ops=FaultyOps(fail_at=fail_at), **SETTINGS)
        with pytest.raises(StorageError):
            run(log)
        log.close(clean=False)
        check(path, -1, accept_loss=number % 2 == 1)


def test_a_segment_that_ends_like_another_one_is_not_taken_for_it(tmp_path: Path) -> None:
    """The partitions of a transaction have the same marker, here at the same offset, and one synced end is an older one."""
    log = open_log(tmp_path)
    topic_log(log, "t", 1)
    for number in range(2):
        begin(log, number, 1)
        log.flush()
        end(log, number)
        log.flush()
    stored = [uncommitted(topic_log(log, "t", index)) for index in range(PARTITIONS)]
    expected = [[(record.offset, record.value) for record in records] for records in stored]
    log.close(clean=False)
    slots = bytearray((tmp_path / "synced-ends").read_bytes())
    # The newer slot of the first partition.
    at = max((128, 192), key=lambda at: int.from_bytes(slots[at + 36 : at + 44], "big"))
    slots[at : at + 64] = bytes(64)
    (tmp_path / "synced-ends").write_bytes(slots)
    log = open_log(tmp_path, accept_loss=True)
    stored = [uncommitted(topic_log(log, "t", index)) for index in range(PARTITIONS)]
    assert [[(record.offset, record.value) for record in records] for records in stored] == expected
    log.close()
