"""Rules that the recordings do not cover: limits on both sides, free choices, unreadable metadata, recovery, expiry."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from broker.cores.groups.classic.group import JOIN, RECORD_BYTES, SESSION
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.expiry import GROUPS_PER_STEP
from broker.cores.groups.records import OffsetCommitRecord
from broker.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_blob
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.offset_commit import OffsetCommitResponse
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from tests.broker.cores.groups.world import QUICK, World, commit, fetch_all, heartbeat, join, leave, sync


def offset_deletion(topic: str) -> OffsetDeleteRequest:
    partitions = [OffsetDeleteRequest.Partition(partition_index=0)]
    return OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequest.Topic(name=topic, partitions=partitions)])


# ---- limits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout_ms", "error"),
    [
        (5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (6_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_the_session_timeout_must_be_within_its_bounds(timeout_ms: int, error: ErrorCode) -> None:
    assert World().answer(join(session_timeout_ms=timeout_ms), 9).error_code == error


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ("x" * 4096, ErrorCode.NONE),
        ("x" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("é" * 4096, ErrorCode.NONE),
        ("\N{GRINNING FACE}" * 2048, ErrorCode.NONE),
        ("\N{GRINNING FACE}" * 2049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_offset_metadata_is_measured_in_utf16_units(metadata: str, error: ErrorCode) -> None:
    world = World()
    answered = world.answer(commit({("orders", 0): 1}, metadata=metadata), 8)
    assert answered.topics[0].partitions[0].error_code == error
    # A commit of which nothing is accepted creates no group.
    assert (world.core.group("g") is None) == (error != ErrorCode.NONE)


def test_a_session_ends_exactly_one_timeout_after_the_last_heartbeat() -> None:
    world = World()
    member = world.generation(1)[0]
    world.let_pass(4_321)
    world.answer(heartbeat(member, 1), 4)
    world.let_pass(9_999)
    assert world.group().members
    world.let_pass(1)
    assert not world.group().members


def test_a_new_member_may_stay_parked_for_five_minutes() -> None:
    world = World()
    leader = world.generation(1, session_timeout_ms=1_800_000, rebalance_timeout_ms=1_800_000)[0]
    parked = world.ask(join(session_timeout_ms=6_000), 3, "c2")
    world.let_pass(299_999)
    assert parked not in world.answers
    world.let_pass(1)
    assert (world.answers[parked].error_code, world.answers[parked].member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    assert list(world.group().members) == [leader]


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_a_rebalance_timeout_of_zero_answers_the_join_and_removes_the_member(timeout_ms: int) -> None:
    world = World()
    ticket = world.ask(join(rebalance_timeout_ms=timeout_ms), 3)
    assert world.answers[ticket].generation_id == 1
    assert (world.group().state, world.group().generation) == (GroupState.EMPTY, 2)


def test_waiting_for_absent_static_members_is_no_busy_loop() -> None:
    world = World()
    world.ask(join(rebalance_timeout_ms=500, group_instance_id="i1"), 9)
    world.ask(sync("i1-1", 1, {"i1-1": "all"}, group_instance_id="i1"), 3)
    parked = world.ask(join(rebalance_timeout_ms=0), 3, "c2")
    world.answer(leave("c2-2"), 4)
    assert world.answers[parked].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    world.group().members["i1-1"].rebalance_timeout_ms = 0
    wakes = 0
    while world.group().members:
        assert world.wake_at is not None
        world.now_ms = max(world.now_ms, world.wake_at)
        world.take(world.core.advance(world.now_ms, world.wall_ms))
        wakes += 1
    assert wakes < 150
    assert world.group().state is GroupState.EMPTY


# ---- free choices ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaders_first", ["range", "sticky"])
def test_a_tied_vote_goes_to_the_first_protocol_in_the_leaders_list(leaders_first: str) -> None:
    others_first = "sticky" if leaders_first == "range" else "range"
    world = World(QUICK._replace(group_initial_rebalance_delay_ms=100))
    first = world.ask(join(protocols={leaders_first: b"", others_first: b""}), 3, "c1")
    world.ask(join(protocols={others_first: b"", leaders_first: b""}), 3, "c2")
    world.let_pass(200)
    assert (world.answers[first].protocol_name, world.answers[first].leader) == (leaders_first, "c1-1")


def test_the_commonly_supported_protocol_with_most_votes_wins() -> None:
    world = World(QUICK._replace(group_initial_rebalance_delay_ms=100))
    first = world.ask(join(protocols={"own": b"", "range": b"", "sticky": b""}), 3)
    for _ in range(2):
        world.ask(join(protocols={"sticky": b"", "range": b""}), 3)
    world.let_pass(200)
    assert world.answers[first].protocol_name == "sticky"


def test_a_protocol_named_twice_counts_once() -> None:
    request = join(protocols={"range": b"one"})
    request.protocols *= 2
    world = World()
    world.ask(request, 3)
    assert world.answer(join(protocols={"sticky": b""}), 3).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    parked = world.ask(join(protocols={"range": b"two"}), 3)
    assert parked not in world.answers


# ---- subscriptions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "subscribed"),
    [
        (encode_blob(ConsumerProtocolSubscription(topics=["orders"])), {"orders"}),
        (encode_blob(ConsumerProtocolSubscription(topics=["clicks", "orders"]), 0), {"orders", "clicks"}),
        (
            b"\0\0\0\0\0\x64" + bytes(8),
            {"orders", "clicks"},
        ),  # claims a hundred topics; it would block a group of Kafka's for ever
        (b"\0\0\0\0\0\x05" + bytes(8), {"orders", "clicks"}),
        (b"\0\0\xff\xff\xff\xff", {"orders", "clicks"}),
        (b"\0", {"orders", "clicks"}),
        (b"", {"orders", "clicks"}),
    ],
    ids=["v3", "v0", "too many topics", "cut short", "negative count", "one byte", "nothing"],
)
def test_unreadable_metadata_counts_as_a_subscription_to_every_topic(metadata: bytes, subscribed: set[str]) -> None:
    world = World()
    world.generation(1, protocols={"range": metadata})
    world.let_pass(0)
    for topic in ("orders", "clicks"):
        answered = world.answer(offset_deletion(topic), 0).topics[0].partitions[0].error_code
        assert (answered == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC) == (topic in subscribed)


def test_metadata_of_other_protocol_types_is_never_read() -> None:
    world = World()
    world.generation(1, protocols={"range": b"\0\0\0\0\0\x64"}, protocol_type="connect")
    assert world.answer(offset_deletion("orders"), 0).error_code == ErrorCode.NON_EMPTY_GROUP


# ---- recovery ----------------------------------------------------------------------------------------------------


def test_a_group_above_a_lowered_size_limit_rebalances_after_the_restart() -> None:
    world = World()
    ids = world.generation(3)
    world.settings = QUICK._replace(group_max_size=2)
    world.start()
    assert world.group().state is GroupState.PREPARING_REBALANCE
    generation = world.group().generation
    errors = []
    for member_id in ids:
        ticket = world.ask(join(member_id), 3)
        if ticket in world.answers and world.answers[ticket].error_code:
            errors.append(world.answers[ticket].error_code)
    assert errors == [ErrorCode.GROUP_MAX_SIZE_REACHED]
    world.let_pass(60_000)
    assert len(world.group().members) <= 2
    assert world.group().generation > generation


def test_a_restart_gives_every_member_a_fresh_session() -> None:
    world = World()
    member = world.generation(1)[0]
    world.let_pass(9_000)
    world.start()
    world.let_pass(9_999)
    assert world.answer(heartbeat(member, 1), 4).error_code == ErrorCode.NONE
    world.start()
    world.let_pass(10_000)
    assert world.group().state is GroupState.EMPTY


def test_a_stored_group_without_rebalance_timeouts_uses_its_session_timeouts() -> None:
    world = World()
    world.generation(1)
    stored = world.group().metadata
    assert stored is not None
    old = replace(stored, members=tuple(replace(member, rebalance_timeout_ms=-1) for member in stored.members))
    world._append(old)
    world.start()
    assert [member.rebalance_timeout_ms for member in world.group().members.values()] == [10_000]


def test_a_group_of_megabytes_survives_a_restart() -> None:
    world = World()
    metadata, share = bytes(500_000), "s" * 500_000
    ids = world.generation(4, protocols={"range": metadata})
    world.ask(join(ids[0], protocols={"range": metadata}), 3)
    for member_id in ids[1:]:
        world.ask(join(member_id, protocols={"range": metadata}), 3)
    generation = world.group().generation
    world.answer(sync(ids[0], generation, dict.fromkeys(ids, share)), 3)
    world.start()
    for member_id in ids:
        assert world.answer(sync(member_id, generation), 3).assignment == share.encode()
        assert world.group().members[member_id].metadata("range") == metadata


# ---- expiry ------------------------------------------------------------------------------------------------------

MINUTE = 60_000
EXPIRING = QUICK._replace(offsets_retention_minutes=2, offsets_retention_check_interval_ms=MINUTE // 2)


def test_offsets_of_a_simple_group_expire_one_retention_after_their_commit() -> None:
    world = World(EXPIRING)
    world.answer(commit({("orders", 0): 1}), 8)
    world.let_pass(MINUTE)
    world.answer(commit({("orders", 1): 1}), 8)
    world.let_pass(MINUTE)
    assert list(world.group().offsets["orders"]) == [1]
    world.let_pass(MINUTE)
    assert world.core.group("g") is None


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    world = World(EXPIRING)
    metadata = encode_blob(ConsumerProtocolSubscription(topics=["orders"]))
    member = world.generation(1, protocols={"range": metadata}, session_timeout_ms=1_800_000)[0]
    world.answer(commit({("orders", 0): 1, ("clicks", 0): 1}, member, 1), 8)
    world.let_pass(3 * MINUTE)
    assert world.group().offsets.keys() == {"orders"}
    assert world.group().state is GroupState.STABLE


@pytest.mark.parametrize("protocol_type", ["connect", "consumer"])
def test_no_offset_expires_while_subscriptions_are_unknown(protocol_type: str) -> None:
    world = World(EXPIRING)
    member = world.generation(1, protocol_type=protocol_type, session_timeout_ms=1_800_000)[0]
    world.answer(commit({("orders", 0): 1}, member, 1), 8)
    world.let_pass(10 * MINUTE)
    assert world.group().offsets.keys() == {"orders"}


def test_offsets_of_an_empty_group_expire_one_retention_after_it_became_empty() -> None:
    world = World(EXPIRING)
    member = world.generation(1, session_timeout_ms=1_800_000)[0]
    world.answer(commit({("orders", 0): 1}, member, 1), 8)
    world.let_pass(5 * MINUTE)
    world.answer(leave(member), 4)
    world.let_pass(2 * MINUTE - 1_000)
    assert world.group().offsets
    world.let_pass(MINUTE)
    assert world.core.group("g") is None
    assert world.rows == {}
    assert world.floors == {}


def test_offsets_of_a_stored_group_without_a_state_time_expire_by_their_commit() -> None:
    world = World(EXPIRING)
    member = world.generation(1, session_timeout_ms=1_800_000)[0]
    world.answer(leave(member), 4)
    world.answer(commit({("orders", 0): 1}), 8)
    stored = world.group().metadata
    assert stored is not None
    world._append(replace(stored, state_timestamp_ms=-1))
    world.start()
    world.answer(fetch_all(), 7)
    world.let_pass(2 * MINUTE - 1)
    assert world.group().offsets
    world.let_pass(MINUTE // 2)
    assert world.core.group("g") is None


def test_a_group_that_has_given_out_an_id_is_kept_until_the_id_expires() -> None:
    world = World(EXPIRING)
    given = world.answer(join(session_timeout_ms=MINUTE), 9).member_id
    world.let_pass(45_000)
    parked = world.ask(join(given), 9)
    assert world.answers[parked].error_code == ErrorCode.NONE


def test_the_expiry_check_runs_in_slices_and_reaches_every_group() -> None:
    world = World(EXPIRING)
    for number in range(GROUPS_PER_STEP + 1):
        world.answer(commit({("orders", 0): 1}, group_id=f"g{number}"), 8)
    left = [len(world.core.hard_state().groups)]
    while left[-1]:
        assert world.wake_at is not None
        world.let_pass(world.wake_at - world.now_ms)
        left.append(len(world.core.hard_state().groups))
    assert max(before - after for before, after in pairwise(left)) == GROUPS_PER_STEP
    assert world.now_ms < 3 * MINUTE
    world.answer(commit({("orders", 0): 1}), 8)
    world.let_pass(3 * MINUTE)
    assert not world.core.hard_state().groups


def test_unloaded_offsets_expire_without_staying_in_memory() -> None:
    world = World(EXPIRING)
    world.answer(commit({("orders", 0): 1}), 8)
    world.answer(commit({("orders", 0): 1}, group_id="h"), 8)
    world.let_pass(MINUTE)
    world.answer(commit({("orders", 1): 2}, group_id="h"), 8)
    world.start()
    world.let_pass(MINUTE)
    assert sorted(world.core.unloaded_groups()) == ["g", "h"]
    for group_id in ("g", "h"):
        stored = world.stored()[1][group_id]
        world.take(world.core.expire_unloaded(group_id, stored, world.now_ms, world.wall_ms))
    world.take(world.core.expire_emptied("g", world.now_ms, world.wall_ms))
    assert world.core.group("g") is None
    assert [record.partition for record in world.stored()[1]["h"]] == [1]  # type: ignore[union-attr]
    assert world.core.needs_load("h")
    assert not world.group("h").offsets


# ---- the limit of a state record -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["c" * 32767, "c" * 32765, "é" * 16383], ids=["longest", "two less", "two bytes each"])
@pytest.mark.parametrize("is_static", [False, True])
def test_new_member_ids_fit_in_a_record_and_are_distinct(name: str, is_static: bool) -> None:
    world = World()
    fields = {"group_instance_id": name} if is_static else {}
    first = world.answer(join(**fields), 5, name)
    second = world.answer(join(**{**fields, "group_id": "h"}), 5, name)
    assert first.member_id.endswith("-1")
    assert second.member_id.endswith("-2")
    assert 32765 <= len(first.member_id.encode()) <= 32767
    assert name.startswith(first.member_id.removesuffix("-1"))


def test_a_member_id_that_just_fits_is_not_cut() -> None:
    name = "c" * 32765
    assert World().answer(join(), 5, name).member_id == f"{name}-1"


@pytest.mark.parametrize("version", [2, 4])
def test_an_unlimited_retention_is_stored_as_the_latest_time(version: int) -> None:
    world = World()
    assert world.answer(commit({("orders", 0): 1}, retention_time_ms=2**63 - 1), version).topics[0].partitions[0] == (
        OffsetCommitResponse.Partition(partition_index=0)
    )
    (stored,) = world.stored()[1]["g"]
    assert isinstance(stored, OffsetCommitRecord)
    assert stored.expire_timestamp_ms == 2**63 - 1


def stable_static(world: World, metadata: bytes) -> str:
    """The id of the only member of a Stable group; in the record it counts 8 characters and its metadata."""
    joined = world.answer(join(group_instance_id="i", protocols={"range": metadata}), 5)
    assert joined.error_code == ErrorCode.NONE
    assert world.answer(sync(joined.member_id, joined.generation_id), 3).error_code == ErrorCode.NONE
    return str(joined.member_id)


# The names of a member "i-1" of client "c1", and of one that has no id yet.
NAMES, NAMES_WITHOUT_ID = len("i-1" + "i" + "c1"), len("i" + "i" + "c1")


@pytest.mark.parametrize(
    ("size", "error"),
    [(RECORD_BYTES - NAMES_WITHOUT_ID, ErrorCode.NONE), (RECORD_BYTES, ErrorCode.UNKNOWN_SERVER_ERROR)],
)
def test_a_join_is_refused_if_the_record_cannot_hold_its_metadata(size: int, error: ErrorCode) -> None:
    world = World()
    joining = join(group_instance_id="i", protocols={"range": b"", "roundrobin": bytes(size)})
    assert world.answer(joining, 5).error_code == error
    assert len(world.group().members) == (error == ErrorCode.NONE)


def test_the_record_limit_counts_the_metadata_of_present_members() -> None:
    world = World()
    half = bytes(RECORD_BYTES // 2)
    member_id = stable_static(world, half)
    second = join(group_instance_id="j", protocols={"range": half})
    assert world.answer(second, 5).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    for _ in range(3):
        member_id = world.answer(join(group_instance_id="i", protocols={"range": half}), 5).member_id
    changed = join(member_id, group_instance_id="i", protocols={"range": half + b"more"})
    assert world.answer(changed, 5).error_code == ErrorCode.NONE
    world.answer(leave(member_id), 4)
    assert world.answer(second, 5).error_code == ErrorCode.NONE


def test_the_record_limit_counts_metadata_after_a_restart() -> None:
    world = World()
    half = bytes(RECORD_BYTES // 2)
    stable_static(world, half)
    world.start()
    second = join(group_instance_id="j", protocols={"range": half})
    assert world.answer(second, 5).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    ("size", "error"),
    [(RECORD_BYTES - NAMES, ErrorCode.NONE), (RECORD_BYTES - NAMES + 1, ErrorCode.UNKNOWN_SERVER_ERROR)],
)
def test_assignments_too_large_for_the_record_are_refused_and_all_rejoin(size: int, error: ErrorCode) -> None:
    world = World()
    joined = world.answer(join(group_instance_id="i", protocols={"range": b""}), 5)
    share = {joined.member_id: "a" * size, "stranger": "a" * 100}
    before = len(world.records)
    assert world.answer(sync(joined.member_id, joined.generation_id, share), 3).error_code == error
    if error:
        assert world.group().state is GroupState.PREPARING_REBALANCE
        assert len(world.records) == before
        joined = world.answer(join(joined.member_id, group_instance_id="i"), 5)
        assert world.answer(sync(joined.member_id, joined.generation_id, {joined.member_id: "a"}), 3).assignment == b"a"
    assert world.group().state is GroupState.STABLE


# ---- details ----------------------------------------------------------------------------------------------------


def test_details_report_the_phase_of_each_member() -> None:
    world = World()
    ids = world.generation(2)
    world.let_pass(1_500)
    details = world.answer(DescribeGroupDetailsRequest(groups=["g"]), 0).groups[0]
    assert [(member.phase, member.heartbeat_age_ms) for member in details.members] == [("stable", 1_500)] * 2
    assert (details.generation_id, details.leader, details.group_state) == (world.group().generation, ids[0], "Stable")
    world.ask(join(ids[0]), 3)
    details = world.answer(DescribeGroupDetailsRequest(groups=["g"]), 0).groups[0]
    assert [member.phase for member in details.members] == ["joined", "join awaited"]
    world.ask(join(ids[1]), 3)
    world.ask(sync(ids[1], world.group().generation), 3)
    details = world.answer(DescribeGroupDetailsRequest(groups=["g"]), 0).groups[0]
    assert [member.phase for member in details.members] == ["sync awaited", "synced"]


# ---- cost --------------------------------------------------------------------------------------------------------


def test_an_hour_of_heartbeats_leaves_one_timer_per_member() -> None:
    world = World()
    ids = world.generation(3)
    for _ in range(1_200):
        world.let_pass(3_000)
        for member_id in ids:
            world.answer(heartbeat(member_id, world.group().generation), 4)
    sessions = [key for key in world.core.deadlines() if key[0] == SESSION]
    assert len(sessions) == 3
    assert not [key for key in world.core.deadlines() if key[0] == JOIN]
    assert world.group().state is GroupState.STABLE


def test_only_the_leader_receives_the_member_list() -> None:
    world = World(QUICK._replace(group_initial_rebalance_delay_ms=3_000))
    tickets = [world.ask(join(), 3) for _ in range(1_000)]
    world.let_pass(60_000)
    assert sum(len(world.answers[ticket].members) for ticket in tickets) == 1_000
