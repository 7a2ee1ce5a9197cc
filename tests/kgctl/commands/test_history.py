"""`kgctl groups history`: the events that it reads, the rebalances that it shows, and clusters without a history."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from broker.cores.groups.events import Cause
from broker.local import LocalBroker
from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.record_batch import Record, build_batch
from kgctl.client.admin.history import EVENTS_TOPIC, Bookmark, group_history, new_events
from kgctl.client.consumer.fetched import Damaged
from kgctl.client.net.errors import KgctlError, NotFound, Precondition, Unreachable
from kgctl.client.net.steps import Call
from kgctl.exit_codes import exit_code_of
from kgctl.model.groups import TopicPartitions
from kgctl.model.history import GroupEventRow, by_rebalance
from kgctl.model.topic_partition import TopicPartition
from kgctl.render.layouts import LAYOUTS
from kgctl.render.machine import as_csv, as_json, as_yaml, envelope
from kgctl.render.table import table
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, member_of
from tests.harness.feeding import METADATA, Feeder, cluster, metadata
from tests.harness.group_answers import by_timestamp
from tests.harness.ports import kept_address
from tests.harness.requests import join_alone, join_request
from tests.harness.wire_client import WireClient

FETCH, LIST_OFFSETS = 1, 2
OUT_OF_RANGE = 1


def event(kind: str = "stable", **changes: Any) -> bytes:
    numbers = dict.fromkeys(("generation", "timestamp", "members", "joined_count", "left_count", "commits_rejected"), 1)
    texts = {"group": "g", "event": kind, "cause": "member joined", "reason": None}
    absent = dict.fromkeys(("prepare_ms", "complete_ms", "partitions_moved"))
    lists: dict[str, Any] = {"joined": [], "left": []}
    return json.dumps({"version": 1, **texts, **numbers, **absent, **lists, **changes}).encode()


def fed(values: list[bytes | None], key: bytes = b"g") -> Feeder:
    """A log that starts at offset 5, with two records per answer."""

    def fetch(call: Call) -> FetchResponse:
        at: int = call.request.topics[0].partitions[0].fetch_offset - 5  # type: ignore[attr-defined]
        batches = [
            build_batch([Record(5 + n, 1, key, values[n])], leader_epoch=0) for n in range(at, min(at + 2, len(values)))
        ]
        row = FetchResponse.Partition(partition_index=0, high_watermark=5 + len(values), records=b"".join(batches))
        return FetchResponse(responses=[FetchResponse.Topic(topic=EVENTS_TOPIC, partitions=[row])])

    ends = by_timestamp({-2: {(EVENTS_TOPIC, 0): 5}, -1: {(EVENTS_TOPIC, 0): 5 + len(values)}})
    return Feeder({METADATA: metadata({EVENTS_TOPIC: {0: 1}}), LIST_OFFSETS: ends, FETCH: fetch})


def history(feeder: Feeder) -> list[GroupEventRow]:
    return feeder.run(group_history(cluster(), "g"))


def test_events_come_from_the_whole_log_in_order() -> None:
    feeder = fed([event(generation=n) for n in range(5)])
    assert [row.generation for row in history(feeder)] == [0, 1, 2, 3, 4]
    assert len(feeder.calls(FETCH)) == 3


def test_a_start_in_a_group_that_counts_epochs_has_the_epoch_that_begins() -> None:
    """Also when another epoch supersedes it: the row then shows what `--all` shows."""
    starts = [event("rebalance_started", generation=n, group_type="consumer") for n in (3, 4)]
    log = fed([*starts, event("stable", generation=4, group_type="consumer")])
    rows = by_rebalance(history(log))
    assert [(row.event, row.generation) for row in rows] == [("superseded", 3), ("stable", 4)]


def test_each_rebalance_is_one_row_that_says_how_it_ended() -> None:
    log = fed(
        [
            event("rebalance_started", generation=1, commits_rejected=2),
            event("stable", generation=2, commits_rejected=3),
            event("rebalance_started", generation=2),
            event("rebalance_started", generation=3),
            event("empty", generation=4),
            event("rebalance_started", generation=4),
            event("rebalance_started", generation=4),
            event("of_a_newer_broker", generation=4),
            event("stable", generation=5),
            event("rebalance_started", generation=5),
            event("member_replaced", generation=5),
            event("rebalance_started", generation=5),
        ]
    )
    events = history(log)
    assert len(events) == 12
    assert [(row.event, row.generation, row.commits_rejected) for row in by_rebalance(events)] == [
        ("stable", 2, 5),
        ("superseded", 3, 1),
        ("empty", 4, 2),
        ("interrupted", 4, 1),
        ("of_a_newer_broker", 4, 1),
        ("stable", 5, 2),
        ("interrupted", 5, 1),
        ("member_replaced", 5, 1),
        ("rebalance_started", 5, 1),
    ]
    assert [row.event for row in by_rebalance(events, is_last_over=True)][-1] == "interrupted"


@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.value)
def test_the_causes_of_the_event_and_of_each_leave_are_shown(cause: Cause) -> None:
    other = next(c for c in Cause if c is not cause)
    for causes in ([cause.value], [other.value, other.value, cause.value]):
        (row,) = history(fed([event(cause=cause.value, left=["m"] * len(causes), left_causes=causes)]))
        header, shown = rendered(row)
        assert cause.value in shown
        assert ("LEFT-BECAUSE" in header) == (len(causes) > 1)
        assert (f"2 {other.value}, 1 {cause.value}" in shown) == (len(causes) > 1)


def test_a_rebalance_that_timed_out_counts_and_names_the_absent_members() -> None:
    (row,) = history(fed([event(absent=["i1-A", "c2-B"], absent_count=2)]))
    header, shown = rendered(row, verbose=True)
    assert ("ABSENT" in header.split(), shown.endswith("i1-A;c2-B")) == (True, True)
    (row,) = history(fed([event()]))
    assert "ABSENT" not in rendered(row, verbose=True)[0]


def rendered(row: GroupEventRow, *, verbose: bool = False) -> list[str]:
    layout = LAYOUTS["group-history"]
    return table([row], layout, verbose=verbose).splitlines()


def test_a_cluster_without_the_events_topic_says_that_it_keeps_no_history() -> None:
    with pytest.raises(Precondition, match="keeps no history of its groups") as caught:
        history(Feeder({METADATA: metadata({})}))
    assert exit_code_of(caught.value) == 6


def test_a_group_without_events_is_not_found() -> None:
    for feeder in (fed([]), fed([event()], key=b"another")):
        with pytest.raises(NotFound):
            history(feeder)


@pytest.mark.parametrize("value", [None, b"", b"[]", b"{", b'{"version": 1}', b'{"version": "1"}'])
def test_a_damaged_event_is_named_by_its_offset(value: bytes | None) -> None:
    with pytest.raises(Damaged, match="__kgctl_group_events, offset 6"):
        history(fed([event(), value]))


def test_later_fields_are_ignored_and_a_later_version_is_refused() -> None:
    (row,) = history(fed([event(weather="fine")]))
    assert row.group == "g"
    with pytest.raises(KgctlError, match="written by a newer broker"):
        history(fed([event(version=2)]))


def test_events_that_retention_removed_meanwhile_are_skipped() -> None:
    feeder = fed([event(generation=n) for n in range(3)])
    answer, asked = feeder.answers[FETCH], []

    def fetch(call: Call) -> FetchResponse:
        asked.append(call)
        if len(asked) > 1:
            return answer(call)  # type: ignore[no-any-return]
        feeder.answers[LIST_OFFSETS] = by_timestamp({-2: {(EVENTS_TOPIC, 0): 7}})
        row = FetchResponse.Partition(partition_index=0, error_code=OUT_OF_RANGE, high_watermark=8, records=None)
        return FetchResponse(responses=[FetchResponse.Topic(topic=EVENTS_TOPIC, partitions=[row])])

    feeder.answers[FETCH] = fetch
    assert [row.generation for row in history(feeder)] == [2]


def test_the_assignment_is_read_from_events_that_have_one() -> None:
    got = {"m-1": {"orders": [2, 0], "views": [1]}, "m-2": {}}
    rows = history(fed([event(assignment=got), event(assignment=None), event()]))
    assert [row.assignment for row in rows] == [
        {"m-1": (TopicPartitions("orders", (2, 0)), TopicPartitions("views", (1,))), "m-2": ()},
        None,
        None,
    ]
    shapes: list[Any] = [[], {"m": []}, {"m": {"t": 1}}]
    for damaged in shapes:
        with pytest.raises(Damaged, match="offset 5"):
            history(fed([event(assignment=damaged)]))


def test_an_assignment_is_an_object_in_json_a_json_text_in_csv_and_not_in_tables() -> None:
    (row,) = history(fed([event(assignment={"é;,": {"orders": [0, 1]}})]))
    expected = {"é;,": [{"topic": "orders", "partitions": [0, 1]}]}
    content = envelope([row], "group-history")
    assert json.loads(as_json(content))["rows"][0]["assignment"] == expected
    assert yaml.safe_load(as_yaml(content))["rows"][0]["assignment"] == expected
    (read,) = csv.DictReader(
        as_csv(
            [
                row,
            ],
            GroupEventRow,
        ).splitlines()
    )
    assert json.loads(read["assignment"]) == expected
    (read,) = csv.DictReader(as_csv(history(fed([event()])), GroupEventRow).splitlines())
    assert read["assignment"] == ""
    assert "orders" not in rendered(row, verbose=True)[1]


# --- new events ---


def generations(rows: Sequence[GroupEventRow]) -> list[int]:
    return [row.generation for row in rows]


def test_only_new_events_are_requested_and_read() -> None:
    values: list[bytes | None] = [event(generation=n) for n in range(3)]
    feeder, known = fed(values), cluster()
    rows, bookmark = feeder.run(new_events(known, "g", None))
    assert generations(rows) == [0, 1, 2]
    before = len(feeder.rounds)
    rows, bookmark = feeder.run(new_events(known, "g", bookmark))
    assert (rows, len(feeder.rounds) - before) == ((), 2)  # one for the cluster, one for events
    values += [event("rebalance_started", generation=3), event(generation=4)]
    rows, bookmark = feeder.run(new_events(known, "g", bookmark))
    assert generations(rows) == [3, 4]
    rows, bookmark = feeder.run(new_events(known, "another", bookmark))
    assert (rows, bookmark.group) == ((), "another")
    rows, _ = feeder.run(new_events(known, "g", bookmark))
    assert generations(rows) == [0, 1, 2, 3, 4]


def test_an_unreadable_event_does_not_affect_the_others() -> None:
    newer, damaged = event(version=2), b"no event"
    feeder, known = fed([event(generation=1), damaged, newer, event(generation=2)]), cluster()
    rows, bookmark = feeder.run(new_events(known, "g", None))
    assert [row.event for row in rows] == ["stable", "unreadable", "unreadable", "stable"]
    assert "offset 6: not an event of a group" in str(rows[1].reason)
    assert "written by a newer broker" in str(rows[2].reason)
    assert feeder.run(new_events(known, "g", bookmark))[0] == ()


@pytest.mark.parametrize(
    "odd",
    [
        {"timestamp": "noon"},
        {"timestamp": 1 << 60},
        {"timestamp": -1},
        {"prepare_ms": 10**400},
        {"generation": 1.5},
        {"members": True},
        {"joined": [1]},
        {"cause": {}},
        {"assignment": {"m": {"t": ["0"]}}},
    ],
)
def test_a_value_that_no_event_has_is_damage(odd: dict[str, Any]) -> None:
    with pytest.raises(Damaged, match="offset 5"):
        history(fed([event(**odd)]))


def test_a_deeply_nested_value_is_damage() -> None:
    with pytest.raises(Damaged, match="offset 5"):
        history(fed([b"[" * 100_000]))


@pytest.mark.parametrize(("next_offset", "start", "left"), [(6, 8, [3, 4]), (99, 5, [0, 1, 2, 3, 4])])
def test_a_bookmark_outside_of_the_log_restarts_at_the_log_start(next_offset: int, start: int, left: list[int]) -> None:
    feeder, known = fed([event(generation=n) for n in range(5)]), cluster()
    answer = feeder.answers[FETCH]

    def fetch(call: Call) -> FetchResponse:
        if start <= call.request.topics[0].partitions[0].fetch_offset <= 10:  # type: ignore[attr-defined]
            return answer(call)  # type: ignore[no-any-return]
        row = FetchResponse.Partition(partition_index=0, error_code=OUT_OF_RANGE, high_watermark=-1, records=None)
        return FetchResponse(responses=[FetchResponse.Topic(topic=EVENTS_TOPIC, partitions=[row])])

    feeder.answers[FETCH] = fetch
    feeder.answers[LIST_OFFSETS] = by_timestamp({-2: {(EVENTS_TOPIC, 0): start}})
    bookmark = Bookmark("g", None, {TopicPartition(EVENTS_TOPIC, 0): next_offset})
    rows, bookmark = feeder.run(new_events(known, "g", bookmark))
    assert (generations(rows), bookmark.offsets) == (left, {(EVENTS_TOPIC, 0): 10})
    assert feeder.run(new_events(known, "g", bookmark))[0] == ()


def test_a_bookmark_of_another_cluster_counts_as_none() -> None:
    feeder = fed([event(generation=n) for n in range(3)])
    bookmark = Bookmark("g", "the one before", {TopicPartition(EVENTS_TOPIC, 0): 7})
    assert generations(feeder.run(new_events(cluster(), "g", bookmark))[0]) == [0, 1, 2]


def test_a_cluster_without_a_history_costs_one_request_each_time() -> None:
    feeder, known = Feeder({METADATA: metadata({})}), cluster()
    for _ in range(2):
        with pytest.raises(Precondition):
            feeder.run(new_events(known, "g", None))
    assert len(feeder.calls(METADATA)) == 2


def test_new_events_are_returned_once_even_if_the_broker_is_killed() -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        with kgctl.admin() as admin:
            assert admin.new_events("g", whole_history=False) == ()
            with member_of(kgctl, "g", {"t": [1, 0]}) as member_id:
                started, stable = admin.new_events("g", whole_history=True)
                assert (started.event, stable.event, started.assignment) == ("rebalance_started", "stable", None)
                assert stable.assignment == {member_id: (TopicPartitions("t", (1, 0)),)}
                assert admin.new_events("g", whole_history=False) == ()
            assert events(admin.new_events("g", whole_history=False)) == ["rebalance_started", "empty"]
            broker.kill()
            with pytest.raises(Unreachable):
                admin.new_events("g", whole_history=False)
            broker.start()
            assert admin.new_events("g", whole_history=False) == ()
            broker.kill()
            broker.start()
            assert admin.new_events("g", whole_history=False) == ()
            with member_of(kgctl, "other", {"t": [0]}), member_of(kgctl, "g", {"t": [0]}):
                assert events(admin.new_events("g", whole_history=False)) == ["rebalance_started", "stable"]
            assert len(admin.new_events("other", whole_history=False)) == 4
            assert len(admin.new_events("g", whole_history=False)) == 8
            assert len(admin.new_events("g", whole_history=True)) == 8
            assert events(by_rebalance(admin.group_history("g"))) == ["stable", "empty"] * 2


@pytest.mark.parametrize("times", [1, 2, 3])
def test_all_events_are_new_on_another_broker_at_the_address(tmp_path: Path, times: int) -> None:
    with LocalBroker(data_dir=tmp_path / "one", listen=kept_address()) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        with kgctl.admin() as admin:
            for _ in range(2):
                with member_of(kgctl, "g", {"t": [0]}):
                    pass
            assert len(admin.new_events("g", whole_history=True)) == 8
            broker.stop()
            with LocalBroker(data_dir=tmp_path / "two", listen=kgctl.bootstrap or ""):
                for _ in range(times):
                    with member_of(kgctl, "g", {"t": [0]}):
                        pass
                assert len(admin.new_events("g", whole_history=False)) == 4 * times
                assert admin.new_events("g", whole_history=False) == ()


def events(rows: Sequence[GroupEventRow]) -> list[str]:
    return [row.event for row in rows]


def test_a_rebalance_that_a_restart_of_the_broker_interrupted_is_not_shown_as_open() -> None:
    with LocalBroker(listen=kept_address()) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        # The member cannot leave a broker that has forgotten its connection.
        with suppress(Unreachable), member_of(kgctl, "g", {"t": [0]}):
            assert kgctl("groups", "rebalance", "g", "--execute").exit_code == 0
            assert events(shown_history(kgctl))[-1] == "rebalance_started"
            broker.kill()
            broker.start()
            assert events(shown_history(kgctl)) == ["stable", "interrupted"]
            assert len(kgctl.rows("groups", "history", "g", "--all")) == 3


def test_a_superseded_rebalance_is_not_shown_as_open(our_cluster: Cluster) -> None:
    kgctl, group = Kgctl(our_cluster.bootstrap_servers), fresh("g")
    host, _, port = our_cluster.bootstrap_servers.partition(":")
    one, two, three, four = clients = [WireClient((host, int(port))) for _ in range(4)]
    first = join_alone(one, group)
    two.send(join_request(group, session_timeout_ms=1_000), 3)
    wait_for(lambda: events(shown_history(kgctl, group))[-1] == "rebalance_started")
    # Another member joins during the rebalance; the first one completes it, and one more joins before the assignment.
    three.send(join_request(group), 3)
    one.send(join_request(group, first.member_id), 3)
    third = three.receive()
    assert [client.receive().generation_id for client in (one, two)] == [third.generation_id] * 2 == [2, 2]
    four.send(join_request(group), 3)
    wait_for(lambda: "superseded" in events(shown_history(kgctl, group)))
    two.close()  # killed: its session ends while the group waits for it
    one.send(join_request(group, first.member_id), 3)
    three.send(join_request(group, third.member_id), 3)
    assert {client.receive().generation_id for client in (one, three, four)} == {3}
    assert events(shown_history(kgctl, group)) == ["stable", "superseded", "rebalance_started"]
    assert [row.generation for row in shown_history(kgctl, group)] == [1, 2, 2]
    for client in clients:
        client.close()


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline


def shown_history(kgctl: Kgctl, group: str = "g") -> list[GroupEventRow]:
    return [GroupEventRow(**row) for row in kgctl.rows("groups", "history", group)]


def test_the_table_names_cause_phases_and_members(our_cluster: Cluster) -> None:
    kgctl, group = Kgctl(our_cluster.bootstrap_servers), fresh("g")
    with member_of(kgctl, group, {"t": [0, 1]}) as member_id:
        pass
    result = kgctl("groups", "history", group)
    assert (result.exit_code, result.stderr) == (0, "")
    header, stable, empty = [line.split() for line in result.stdout.splitlines()]
    assert header == (
        [
            "TIME",
            "GENERATION",
            "EVENT",
            "CAUSE",
            "PREPARE-MS",
            "COMPLETE-MS",
            "MEMBERS",
            "JOINED",
            "LEFT",
            "MOVED",
            "REJECTED",
        ]
    )
    assert (stable[1:5], stable[7:]) == (["1", "stable", "member", "joined"], ["1", "1", "0", "0", "0"])
    assert (empty[1:5], empty[6:]) == (["2", "empty", "member", "left"], ["-", "0", "0", "1", "-", "0"])
    assert stable[0].endswith("Z")
    verbose = kgctl("groups", "history", group, "--verbose", "--limit", 1).stdout.splitlines()
    assert len(verbose) == 2
    assert verbose[1].endswith(f" {member_id}")
    assert kgctl("groups", "history", fresh("none")).exit_code == 5
    assert kgctl("groups", "history", group, "--limit", 0).exit_code == 2
