"""`kgctl pipeline restore-groups`: groups continue with what they had not read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import confluent_kafka
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from broker.local import LocalBroker
from kgctl import Producer
from kgctl.model.groups import CLASSIC, SHARE
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.groups import write_groups
from kgctl.pipelines.archive.layout import GroupOffset, GroupsSnapshot
from kgctl.pipelines.replay.settings import PREFIX
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.kgctl.pipelines.archive.making import NOON_MS, Row, add, facts
from tests.kgctl.pipelines.replay.reading_back import Content, of_rows, records

Partitions = Sequence[Sequence[Row]]
BY_KEY = ("--partitions", "by-key")


@st.composite
def partitions_of_rows(draw: st.DrawFn) -> list[list[Row]]:
    """Gaps between offsets, and times that go back and forth."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        offset, rows = draw(st.integers(0, 3)), []
        for place in range(draw(st.integers(0, 20))):
            offset += draw(st.sampled_from([1, 1, 1, 2, 7]))
            rows.append(
                Row(offset, b"k%d" % (place % 3), b"%d-%d" % (number, place), NOON_MS + draw(st.integers(0, 9)))
            )
        found.append(rows)
    return found


def archived(
    folder: Path,
    topic: str,
    partitions: Partitions,
    offsets: Mapping[str, Sequence[int]],
    *,
    knows_times: bool = True,
    type_: str = CLASSIC,
) -> None:
    """`offsets`: what each group has committed for each partition."""
    rows = {TopicPartition(topic, number): some for number, some in enumerate(partitions)}
    ranges = {key: (0, end_of(some)) for key, some in rows.items()}
    add(folder, rows, ranges, topics=[facts(topic, len(partitions), configs={"retention.ms": "-1"})])
    committed = [
        GroupOffset(
            group,
            topic,
            number,
            offset,
            -1,
            f"of {group}",
            time_at(partitions[number], offset) if knows_times else None,
            0,
            end_of(partitions[number]) if knows_times else offset,
            type_,
        )
        for group, own in offsets.items()
        for number, offset in enumerate(own)
    ]
    write_groups(folder, GroupsSnapshot(NOON_MS + 1000, tuple(committed)))


def end_of(rows: Sequence[Row]) -> int:
    return rows[-1].offset + 3 if rows else 0


def time_at(rows: Sequence[Row], offset: int) -> int | None:
    return next((row.timestamp_ms for row in rows if row.offset >= offset), None)


def run(kgctl: Kgctl, verb: str, folder: Path, *arguments: object, code: int = 0) -> str:
    done = kgctl("pipeline", verb, folder, *arguments, "--execute", "--no-journal")
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def unread(kgctl: Kgctl, group: str, topic: str, partitions: int) -> list[list[Content]]:
    """The records that the group reads from now on, per partition."""
    assert kgctl.bootstrap
    with kgctl.admin() as admin:
        commits = admin.committed([group])[group]
    assert isinstance(commits, dict)
    found = records(kgctl.bootstrap, topic, partitions)
    return [
        [
            (one.key, one.value, one.headers, one.timestamp_ms)
            for one in found[number]
            if one.offset >= (commits[TopicPartition(topic, number)].offset or 0) and one.value != b"before"
        ]
        for number in range(partitions)
    ]


def left(partitions: Partitions, offsets: Sequence[int]) -> list[list[Content]]:
    return [
        of_rows([row for row in rows if row.offset >= offset]) for rows, offset in zip(partitions, offsets, strict=True)
    ]


@st.composite
def with_offsets(draw: st.DrawFn) -> tuple[list[list[Row]], list[list[int]]]:
    partitions = draw(partitions_of_rows())
    return partitions, [[draw(st.integers(0, end_of(rows))) for rows in partitions] for _ in range(3)]


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(with_offsets(), st.booleans())
def test_after_a_replay_groups_read_exactly_what_they_had_not_read(
    cluster: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
    given_: tuple[list[list[Row]], list[list[int]]],
    grows: bool,
) -> None:
    """Also if other records were in the target before, and if the replay took several runs."""
    partitions, committed = given_
    folder, topic, kgctl = tmp_path_factory.mktemp("archive"), fresh("moved"), Kgctl(cluster.bootstrap_servers)
    offsets = {fresh("g"): own for own in committed}
    if grows:
        created = kgctl("topics", "create", topic, "--partitions", len(partitions), "--config", "retention.ms=-1")
        assert created.exit_code == 0, created.output
        assert kgctl("produce", topic, "--partition", 0, text="before\n").exit_code == 0
        spans = {TopicPartition(topic, number): (0, end_of(rows)) for number, rows in enumerate(partitions)}
        for first, end in ((0, 8), (8, 1000)):
            some = {key: [row for row in partitions[key.partition] if first <= row.offset < end] for key in spans}
            ranges = {key: (min(first, last), min(end, last)) for key, (_, last) in spans.items()}
            add(folder, some, ranges, topics=[facts(topic, len(partitions))])
            run(kgctl, "replay", folder, "--all-topics")
        whole = tmp_path_factory.mktemp("other")
        archived(whole, topic, partitions, offsets)
        (folder / "groups.json").write_bytes((whole / "groups.json").read_bytes())
    else:
        archived(folder, topic, partitions, offsets)
    run(kgctl, "replay", folder, "--all-topics", "--create")
    run(kgctl, "restore-groups", folder)
    for group, own in offsets.items():
        assert unread(kgctl, group, topic, len(partitions)) == left(partitions, own)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    with_offsets(),
    st.sampled_from([("--by", "timestamp"), BY_KEY, (*BY_KEY, "--no-transactions")]),
    st.sampled_from(["0s", "4s", "-4s"]),
    st.booleans(),
)
# The keys go to different partitions. The first group has read the older record: nothing newer follows it there, not even
# the marker of a transaction.
@example(
    given_=([[Row(0, b"k0", b"0-0", NOON_MS + 9)], [Row(0, b"k3", b"1-0", NOON_MS + 1)]], [[0, 3], [3, 3], [0, 0]]),
    how=(*BY_KEY, "--no-transactions"),
    shift="0s",
    knows_times=True,
)
def test_by_time_groups_skip_no_record(
    our_cluster: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
    given_: tuple[list[list[Row]], list[list[int]]],
    how: tuple[str, ...],
    shift: str,
    knows_times: bool,
) -> None:
    """Also if times go back, if the snapshot lacks them, and if a clock that is behind writes more after the replay."""
    partitions, committed = given_
    folder, topic, kgctl = tmp_path_factory.mktemp("archive"), fresh("moved"), Kgctl(our_cluster.bootstrap_servers)
    offsets = {fresh("g"): own for own in committed}
    archived(folder, topic, partitions, offsets, knows_times=knows_times)
    shifted = ("--shift-time", shift)
    run(kgctl, "replay", folder, "--all-topics", "--create", *shifted, *(how if how[0] == "--partitions" else ()))
    later = write_late(our_cluster.bootstrap_servers, topic, len(partitions))
    run(kgctl, "restore-groups", folder, *(how if how[0] == "--by" else ()))
    milliseconds = 1000 * int(shift.removesuffix("s"))
    for group, own in offsets.items():
        found = {one for some in unread(kgctl, group, topic, len(partitions)) for one in some}
        expected = {(*one[:3], one[3] + milliseconds) for some in left(partitions, own) for one in some}
        assert found >= expected | later
        if all(offset == end_of(rows) for offset, rows in zip(own, partitions, strict=True)):
            assert found == later


def write_late(bootstrap: str, topic: str, partitions: int) -> set[Content]:
    """A record per partition, with a time before all others."""
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(partitions):
            producer.send(topic, b"late-%d" % number, partition=number, timestamp_ms=NOON_MS - 60_000)
        producer.flush(30)
    return {(None, b"late-%d" % number, (), NOON_MS - 60_000) for number in range(partitions)}


def orders(count: int) -> list[Row]:
    return [Row(2 * n, b"k", b"v%d" % n, NOON_MS + 1000 * n) for n in range(count)]


def test_a_plan_changes_nothing_and_undo_takes_the_offsets_back(
    our_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    topic, kgctl, group = fresh("moved"), Kgctl(our_cluster.bootstrap_servers), fresh("g")
    archived(tmp_path, topic, [orders(10)], {group: [7]})
    run(kgctl, "replay", tmp_path, "--all-topics", "--create")
    planned = kgctl("pipeline", "restore-groups", tmp_path)
    assert planned.exit_code == 0
    assert planned.stderr.startswith("The archive has the committed offsets of ")
    assert "Dry run: nothing was changed. Add --execute to apply the plan." in planned.stderr
    with kgctl.admin() as admin:
        assert admin.committed([group]) == {group: {}}
        assert kgctl("pipeline", "restore-groups", tmp_path, "--execute").exit_code == 0
        (found,) = admin.committed([group])[group].values()  # type: ignore[union-attr]
        assert (found.offset, found.metadata) == (4, f"of {group}")
        undone = kgctl("undo", "--execute")
        assert undone.exit_code == 0, undone.output
        assert admin.committed([group]) == {group: {}}


def test_positions_that_a_transaction_may_still_change_are_not_taken(cluster: Cluster, tmp_path: Path) -> None:
    topic, kgctl, group = fresh("moved"), Kgctl(cluster.bootstrap_servers), fresh("g")
    archived(tmp_path, topic, [orders(10)], {group: [20]})
    run(kgctl, "replay", tmp_path, "--all-topics", "--create", "--id", topic)
    name = PREFIX + topic
    with kgctl.admin() as admin:
        ((key, position),) = admin.committed([name])[name].items()  # type: ignore[union-attr]
    producer = confluent_kafka.Producer({"bootstrap.servers": kgctl.bootstrap, "transactional.id": fresh("tx")})
    consumer = confluent_kafka.Consumer({"bootstrap.servers": kgctl.bootstrap, "group.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    moved = confluent_kafka.TopicPartition(*key, position.offset, position.metadata)
    producer.send_offsets_to_transaction([moved], consumer.consumer_group_metadata(), 30)
    refused = run(kgctl, "restore-groups", tmp_path, code=6)
    assert f"Error: the last transaction of replay {name} has not ended: wait if the replay is still running" in refused
    producer.abort_transaction(30)
    consumer.close()
    run(kgctl, "restore-groups", tmp_path)
    assert unread(kgctl, group, topic, 1) == [[]]


def test_a_group_gets_a_new_name_and_the_replay_a_choice(our_cluster: Cluster, tmp_path: Path) -> None:
    topic, kgctl, group = fresh("moved"), Kgctl(our_cluster.bootstrap_servers), fresh("g")
    archived(tmp_path, topic, [orders(10)], {group: [7], fresh("other"): [0]})
    for number in ("1", "2"):
        run(kgctl, "replay", tmp_path, "--topic", f"{topic}={topic}-{number}", "--create")
    refused = run(kgctl, "restore-groups", tmp_path, code=6)
    assert re.search(rf"several times, \w+ to '{topic}-1', \w+ to '{topic}-2': choose one with .*{topic}=NAME", refused)
    run(kgctl, "restore-groups", tmp_path, "--topic", f"{topic}={topic}-2", "--group", f"{group}={group}-new")
    assert unread(kgctl, f"{group}-new", f"{topic}-2", 1) == left([orders(10)], [7])
    with kgctl.admin() as admin:
        assert admin.committed([group]) == {group: {}}
    run(kgctl, "replay", tmp_path, "--topic", f"{topic}={topic}-2", "--id", "again")
    refused = run(kgctl, "restore-groups", tmp_path, "--topic", f"{topic}={topic}-2", code=6)
    assert f"again to '{topic}-2'" in refused
    assert "choose one with --id" in refused
    elsewhere = fresh("elsewhere")
    key = TopicPartition(elsewhere, 0)
    add(tmp_path, {key: orders(2)}, {key: (0, 10)}, topics=[facts(elsewhere)])
    reader = fresh("reader")
    write_groups(tmp_path, GroupsSnapshot(NOON_MS, (GroupOffset(reader, elsewhere, 0, 10, -1, "", 1, 0, 10),)))
    run(kgctl, "replay", tmp_path, "--topic", elsewhere, "--create")
    # Which replay of the other topic it would be does not matter to a group without offsets there.
    run(kgctl, "restore-groups", tmp_path, "--group", reader)
    write_groups(tmp_path, GroupsSnapshot(NOON_MS, (GroupOffset(group, topic, 0, 7, -1, "", 1, 0, 21),)))
    run(kgctl, "restore-groups", tmp_path, "--id", "again", "--group", group)
    assert unread(kgctl, group, f"{topic}-2", 1) == left([orders(10)], [7])


def test_trials_do_not_hide_the_replay_of_everything_under_its_own_name(our_cluster: Cluster, tmp_path: Path) -> None:
    topic, kgctl, group = fresh("moved"), Kgctl(our_cluster.bootstrap_servers), fresh("g")
    archived(tmp_path, topic, [orders(10)], {group: [7]})
    run(kgctl, "replay", tmp_path, "--topic", f"{topic}={topic}-trial", "--create")
    run(kgctl, "replay", tmp_path, "--all-topics", "--create")
    run(kgctl, "replay", tmp_path, "--topic", topic, "--key", "no such key")
    run(kgctl, "restore-groups", tmp_path)
    assert unread(kgctl, group, topic, 1) == left([orders(10)], [7])
    with kgctl.admin() as admin:
        assert {key.topic for key in admin.committed([group])[group]} == {topic}


def test_a_group_ahead_of_an_unfinished_replay_waits_for_it(our_cluster: Cluster, tmp_path: Path) -> None:
    topic, kgctl, groups = fresh("moved"), Kgctl(our_cluster.bootstrap_servers), [fresh("g"), fresh("h")]
    archived(tmp_path, topic, [orders(10)], {})
    run(kgctl, "replay", tmp_path, "--all-topics", "--create")
    key = TopicPartition(topic, 0)
    add(tmp_path, {key: [Row(30, value=b"late")]}, {key: (21, 40)})
    offsets = [
        GroupOffset(groups[0], topic, 0, 35, -1, "", None, 0, 40),
        GroupOffset(groups[1], topic, 0, 6, -1, "", 1, 0, 40),
    ]
    write_groups(tmp_path, GroupsSnapshot(NOON_MS, tuple(offsets)))
    refused = run(kgctl, "restore-groups", tmp_path, code=4)
    assert f"the replay is at offset 21 of {topic}-0, the group at 35: finish the replay first" in refused
    assert unread(kgctl, groups[1], topic, 1) == left([orders(10)], [6])
    with kgctl.admin() as admin:
        assert admin.committed([groups[0]]) == {groups[0]: {}}


@pytest.mark.parametrize("sets_times", [False, True], ids=["now", "LogAppendTime"])
def test_times_of_the_replay_do_not_show_where_a_group_was(
    our_cluster: Cluster, tmp_path: Path, sets_times: bool
) -> None:
    topic, kgctl, groups = fresh("moved"), Kgctl(our_cluster.bootstrap_servers), [fresh("g"), fresh("h")]
    archived(tmp_path, topic, [orders(10)], {groups[0]: [7], groups[1]: [21]})
    config = ("--config", "message.timestamp.type=LogAppendTime") if sets_times else ()
    assert kgctl("topics", "create", topic, *config).exit_code == 0
    run(kgctl, "replay", tmp_path, "--all-topics", "--partitions", "by-key", *(() if sets_times else ["--now"]))
    refused = run(kgctl, "restore-groups", tmp_path, code=4)
    assert f"group '{groups[0]}': the records of topic '{topic}' have the times at which they were replayed" in refused
    with kgctl.admin() as admin:
        assert admin.committed([groups[0]]) == {groups[0]: {}}
    # The other one had read everything, and the end of the replay is known.
    assert unread(kgctl, groups[1], topic, 1) == [[]]


def test_by_key_a_group_reads_a_partition_in_which_it_had_committed_nothing(
    our_cluster: Cluster, tmp_path: Path
) -> None:
    topic, kgctl, group = fresh("moved"), Kgctl(our_cluster.bootstrap_servers), fresh("g")
    partitions = [orders(10), [replace(row, key=b"other", timestamp_ms=row.timestamp_ms + 5) for row in orders(10)]]
    archived(tmp_path, topic, partitions, {group: [end_of(partitions[0])]})
    run(kgctl, "replay", tmp_path, "--all-topics", "--create", *BY_KEY)
    run(kgctl, "restore-groups", tmp_path)
    found = [one for some in unread(kgctl, group, topic, 2) for one in some]
    assert set(of_rows(partitions[1])) <= set(found)


def test_a_replay_that_is_not_known_is_not_replaced_by_times(our_cluster: Cluster, tmp_path: Path) -> None:
    topic, kgctl, group = fresh("moved"), Kgctl(our_cluster.bootstrap_servers), fresh("g")
    archived(tmp_path, topic, [orders(10)], {group: [7]})
    refused = run(kgctl, "restore-groups", tmp_path, "--by", "replay", code=6)
    assert f"no replay of this archive to this cluster is known for '{topic}'" in refused


def test_a_topic_that_is_not_there_is_named_with_the_command_that_writes_it(
    our_cluster: Cluster, tmp_path: Path
) -> None:
    topic, kgctl, group = fresh("moved"), Kgctl(our_cluster.bootstrap_servers), fresh("g")
    archived(tmp_path, topic, [orders(10)], {group: [7]})
    refused = run(kgctl, "restore-groups", tmp_path, code=5)
    command = f"`kgctl pipeline replay {tmp_path} --all-topics --create --execute`"
    assert f"The cluster has no topic '{topic}': write the records first, for example with {command}." in refused
    assert "No replay" not in refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--group", "g=a", "--group", "g=b"), "'g' is given twice."),
        (("--topic", "t=a", "--topic", "t=b"), "'t' is given twice."),
        (("--topic", "t=a", "--topic", "u=a"), "two topics would be one."),
    ],
)
def test_no_name_is_dropped_silently(
    our_cluster: Cluster, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    archived(tmp_path, "t", [orders(1)], {"g": [0]})
    assert message in run(Kgctl(our_cluster.bootstrap_servers), "restore-groups", tmp_path, *arguments, code=2)


def test_topics_that_were_moved_by_other_means_are_found_by_time(our_cluster: Cluster, tmp_path: Path) -> None:
    """The cluster may have older records than the archive."""
    topic, kgctl = fresh("moved"), Kgctl(our_cluster.bootstrap_servers)
    all_rows = orders(10)
    assert kgctl("topics", "create", topic, "--config", "retention.ms=-1").exit_code == 0
    with Producer(bootstrap_servers=our_cluster.bootstrap_servers) as producer:
        for row in all_rows:
            producer.send(topic, row.value, row.key, timestamp_ms=row.timestamp_ms)
        producer.flush(20)
    add(tmp_path, {TopicPartition(topic, 0): all_rows[4:]}, {TopicPartition(topic, 0): (8, 21)}, topics=[facts(topic)])
    behind, done, older, unknown = (fresh("g") for _ in range(4))
    of = [(behind, 11, None), (done, 21, None), (older, 3, all_rows[2].timestamp_ms), (unknown, 3, None)]
    offsets = [GroupOffset(group, topic, 0, offset, -1, "", time_ms, None, None) for group, offset, time_ms in of]
    write_groups(tmp_path, GroupsSnapshot(NOON_MS + 1_000_000, tuple(offsets)))
    write_late(our_cluster.bootstrap_servers, topic, 1)
    refused = run(kgctl, "restore-groups", tmp_path, code=4)
    assert f"group '{unknown}': the archive has no time of the record at offset 3 of {topic}-0" in refused
    late = [(None, b"late-0", (), NOON_MS - 60_000)]
    assert (
        f"No replay of '{topic}' to this cluster is known in {tmp_path}/_replays: offsets are found by time." in refused
    )
    assert unread(kgctl, behind, topic, 1) == [of_rows(all_rows[6:]) + late]
    assert unread(kgctl, older, topic, 1) == [of_rows(all_rows[2:]) + late]
    # It reads one record again: only that one is certainly before all that it has not read.
    assert unread(kgctl, done, topic, 1) == [of_rows(all_rows[9:]) + late]


def test_a_share_group_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, group, other = fresh("moved"), fresh("share"), fresh("g")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    archived(tmp_path, topic, [orders(10)], {group: [7]}, type_=SHARE)
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("cluster", "set-feature", "share.version=1", "--execute", "--no-journal").exit_code == 0
        run(kgctl, "replay", tmp_path, "--all-topics", "--create")
        run(kgctl, "restore-groups", tmp_path)
        (row,) = kgctl.rows("groups", "list", "--match", group)
        assert row["type"] == SHARE
        (row,) = kgctl.rows("groups", "describe", group)
        assert row["current_offset"] == 4
        kgctl.commit(other, topic, p0=1)
        refused = run(kgctl, "restore-groups", tmp_path, "--group", f"{group}={other}", code=6)
        assert "the offsets are those of a share group" in refused


def test_without_committed_offsets_there_is_nothing_to_restore(our_cluster: Cluster, tmp_path: Path) -> None:
    archived(tmp_path, "orders", [orders(1)], {})
    kgctl = Kgctl(our_cluster.bootstrap_servers)
    assert "holds no committed offsets of groups" in run(kgctl, "restore-groups", tmp_path, code=5)
