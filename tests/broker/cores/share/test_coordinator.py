"""The share coordinator: epochs fence, snapshots bound the updates, and the records give the state back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.cores.share.coordinator import Change, ShareCoordinator, ShareStateRecord
from broker.cores.share.state import PartitionState, StateSummary
from broker.cores.share.state_batches import StateBatch
from broker.protocol.errors import ErrorCode
from broker.protocol.share_state import SharePartitionKey, ShareSnapshotValue, ShareUpdateValue

KEY = SharePartitionKey("g", bytes(16), 0)
OTHER = SharePartitionKey("g", b"1" * 16, 0)
LAST_EPOCH = 2**31 - 1


def record(change: Change) -> ShareStateRecord:
    assert change.error == ErrorCode.NONE
    assert change.record is not None
    return change.record


def state(coordinator: ShareCoordinator, key: SharePartitionKey = KEY) -> PartitionState:
    """The state. The coordinator remembers the leader epoch with which it is read."""
    found, _ = coordinator.read(key, LAST_EPOCH, 0)
    assert isinstance(found, PartitionState)
    return found


def test_a_partition_without_state_can_neither_be_read_nor_written() -> None:
    coordinator = ShareCoordinator(500)
    assert coordinator.read(KEY, 0, 0) == (ErrorCode.INVALID_REQUEST, None)
    assert coordinator.write(KEY, 0, 0, 0, [], 0).error == ErrorCode.INVALID_REQUEST
    assert coordinator.delete(KEY) == (ErrorCode.NONE, None)
    assert coordinator.summary(KEY) == StateSummary(-1, 0, 0)


def test_older_epochs_are_fenced() -> None:
    coordinator = ShareCoordinator(500)
    record(coordinator.initialize(KEY, 5, 10, 1_000))
    record(coordinator.write(KEY, 5, 3, 11, [], 1_000))
    assert coordinator.write(KEY, 5, 2, 11, [], 0).error == ErrorCode.FENCED_LEADER_EPOCH
    assert coordinator.write(KEY, 4, 3, 11, [], 0).error == ErrorCode.FENCED_STATE_EPOCH
    assert coordinator.read(KEY, 2, 0) == (ErrorCode.FENCED_LEADER_EPOCH, None)
    assert coordinator.initialize(KEY, 4, 0, 0).error == ErrorCode.FENCED_STATE_EPOCH
    # -1 is not compared, and changes nothing.
    record(coordinator.write(KEY, -1, -1, -1, [], 0))
    assert coordinator.summary(KEY) == (11, 3, 5)
    record(coordinator.initialize(KEY, 6, 0, 0))
    # The leader epoch of the summary is that of the last record, but older ones stay fenced.
    assert coordinator.summary(KEY) == (0, 0, 6)
    assert coordinator.write(KEY, 6, 2, 0, [], 0).error == ErrorCode.FENCED_LEADER_EPOCH


def test_a_read_remembers_a_newer_leader_epoch() -> None:
    coordinator = ShareCoordinator(500)
    record(coordinator.initialize(KEY, 1, 7, 0))
    assert coordinator.read(KEY, 0, 0) == (PartitionState(1, 7, ()), None)
    found, update = coordinator.read(KEY, 4, 0)
    assert found == PartitionState(1, 7, ())
    assert update is not None
    assert isinstance(update.value, ShareUpdateValue)
    assert coordinator.summary(KEY) == (7, 4, 1)


def test_updates_become_a_snapshot_after_their_limit() -> None:
    coordinator = ShareCoordinator(2)
    first = record(coordinator.initialize(KEY, 1, 0, 1_000)).value
    assert isinstance(first, ShareSnapshotValue)
    assert (first.snapshot_epoch, first.create_timestamp, first.write_timestamp) == (0, 1_000, 1_000)
    kinds = []
    for number in range(8):
        batch = StateBatch(number, number, 2, 1)
        value = record(coordinator.write(KEY, 1, 0, -1, [batch], 2_000)).value
        assert value is not None
        kinds.append((type(value) is ShareSnapshotValue, value.snapshot_epoch, len(value.state_batches)))
    # As Kafka counts: the first update of a partition is not counted. A snapshot holds all of the state.
    update, snapshot = False, True
    assert kinds == [
        *((update, 0, 1) for _ in range(3)),
        (snapshot, 1, 1),
        *((update, 1, 1) for _ in range(2)),
        (snapshot, 2, 1),
        (update, 2, 1),
    ]
    assert coordinator.read(KEY, 0, 0)[0] == PartitionState(1, 0, (StateBatch(0, 7, 2, 1),))
    # A newer state epoch is in no update.
    assert isinstance(record(coordinator.write(KEY, 2, 0, 8, [], 0)).value, ShareSnapshotValue)
    assert state(coordinator) == PartitionState(2, 8, ())


def test_a_deleted_topic_is_forgotten_in_all_groups() -> None:
    coordinator = ShareCoordinator(500)
    for key in (KEY, KEY._replace(group_id="h"), OTHER):
        record(coordinator.initialize(key, 1, 0, 0))
    assert {(one.key.group_id, one.value) for one in coordinator.topic_deleted(KEY.topic_id)} == {
        ("g", None),
        ("h", None),
    }
    assert coordinator.topic_ids() == {OTHER.topic_id}


states = st.builds(
    lambda first, more, state, count: StateBatch(first, first + more, state, count),
    st.integers(0, 20),
    st.integers(0, 6),
    st.sampled_from([0, 2, 4]),
    st.integers(1, 3),
)
keys = st.sampled_from([KEY, OTHER])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("initialize"), keys, st.integers(0, 3), st.integers(-1, 20)),
        st.tuples(st.just("write"), keys, st.integers(0, 3), st.integers(-1, 20), st.lists(states, max_size=3)),
        st.tuples(st.just("read"), keys, st.integers(0, 3)),
        st.tuples(st.just("delete"), keys),
    ),
    max_size=30,
)


@given(steps, st.integers(0, 3))
def test_the_records_give_the_same_state_and_those_from_the_last_snapshot_do(
    asked: list[tuple[object, ...]], limit: int
) -> None:
    live = ShareCoordinator(limit)
    records: list[ShareStateRecord | None] = []
    for name, key, *arguments in asked:
        assert isinstance(key, SharePartitionKey)
        if name == "initialize":
            records.append(live.initialize(key, *arguments, 0).record)  # type: ignore[arg-type]
        elif name == "write":
            epoch, start, batches = arguments
            records.append(live.write(key, epoch, epoch, start, batches, 0).record)  # type: ignore[arg-type]
        elif name == "read":
            records.append(live.read(key, *arguments, 0)[1])  # type: ignore[arg-type]
        else:
            records.append(live.delete(key).record)
    kept = [one for one in records if one is not None]
    compacted = []
    for at, one in enumerate(kept):
        is_superseded = any(
            later.key == one.key and not isinstance(later.value, ShareUpdateValue) for later in kept[at + 1 :]
        )
        if not is_superseded:
            compacted.append(one)
    expected = [(live.summary(key), live.read(key, LAST_EPOCH, 0)[0]) for key in (KEY, OTHER)]
    for stored in (kept, compacted):
        recovered = ShareCoordinator(limit)
        for one in stored:
            recovered.apply(one)
        assert [(recovered.summary(key), recovered.read(key, LAST_EPOCH, 0)[0]) for key in (KEY, OTHER)] == expected
