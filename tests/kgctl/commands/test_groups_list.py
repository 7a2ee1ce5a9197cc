"""`kgctl groups list` on both kinds of clusters."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from kgctl.model.group_overview import GroupOverview
from kgctl.render.layouts import LAYOUTS
from kgctl.render.selection import Selection, SortKey
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill, member_of, opened


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    """Two partitions with 10 records each."""
    name = fresh("listed")
    assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
    fill(kgctl, name, [10, 10])
    return name


def test_groups_are_listed_with_members_and_lag(kgctl: Kgctl, topic: str) -> None:
    stem = fresh("g")
    empty, live = f"{stem}-empty", f"{stem}-live"
    kgctl.commit(empty, topic, p0=1, p1=10)
    with member_of(kgctl, live, {topic: [0]}):
        rows = {row["group"]: row for row in kgctl.rows("groups", "list", "--match", f"{stem}-.*")}
        table = kgctl("groups", "list", "--match", f"{stem}-.*")

    assert rows.keys() == {empty, live}
    shown = {name: [rows[name][key] for key in ("type", "state", "members")] for name in rows}
    assert shown == {empty: ["Classic", "Empty", 0], live: ["Classic", "Stable", 1]}
    assert (rows[empty]["lag"], rows[empty]["worst_partition"], rows[empty]["partitions"]) == (9, f"{topic}-0", 2)
    header, first, _ = (line.split() for line in table.stdout.splitlines())
    # The first three columns are those of the listing without --plain before it had more.
    assert header[:5] == ["GROUP", "TYPE", "STATE", "MEMBERS", "LAG"]
    assert first[:5] == [empty, "Classic", "Empty", "0", "9"]


def test_groups_are_filtered_by_name_lag_state_and_type(kgctl: Kgctl, topic: str) -> None:
    stem = fresh("g")
    behind, done, live = (f"{stem}-{name}" for name in ("behind", "done", "live"))
    kgctl.commit(behind, topic, p0=0)
    kgctl.commit(done, topic, p0=10)
    with member_of(kgctl, live, {topic: [0]}):
        for arguments, expected in (
            ([], [behind, done, live]),
            (["--min-lag", "10"], [behind]),
            (["--min-lag", "11"], []),
            (["--state", "stable"], [live]),
            (["--state", "EMPTY,dead", "--type", "classic"], [behind, done]),
        ):
            rows = kgctl.rows("groups", "list", "--match", f"{stem}-.*", *arguments)
            assert [row["group"] for row in rows] == expected
    assert kgctl.rows("groups", "list", "--match", stem) == []


def test_the_plain_list_has_type_state_and_protocol(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    with member_of(kgctl, group, {topic: [0]}):
        (row,) = kgctl.rows("groups", "list", "--plain", "--match", group)
        assert row == {"group": group, "type": "Classic", "state": "Stable", "protocol": "consumer"}
        lines = kgctl("groups", "list", "--plain", "--match", group).stdout.splitlines()
    assert [line.split() for line in lines] == [["GROUP", "TYPE", "STATE", "PROTOCOL"], list(row.values())]


def test_a_group_that_just_committed_has_an_age_and_a_reason(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=1)
    (row,) = kgctl.rows("groups", "list", "--match", group)
    assert 0 <= row["last_commit_age_ms"] < 60_000
    assert (row["verdict"], "last commit" in row["verdict_reason"]) == (None, True)


def test_a_group_with_lag_is_ok_once_it_has_read_all_but_recent_records(kgctl: Kgctl, topic: str) -> None:
    old = fresh("old")
    assert kgctl("topics", "create", old, "--partitions", 1).exit_code == 0
    fill(kgctl, old, [10], timestamp_ms=int(time.time() * 1000) - 3_600_000)
    recent, late = fresh("recent"), fresh("late")
    kgctl.commit(recent, topic, p0=4)
    kgctl.commit(late, old, p0=4)
    with member_of(kgctl, recent, {topic: [0]}), member_of(kgctl, late, {old: [0]}):
        for command in (["list", "--match"], ["describe", "--summary", "--match"]):
            rows = {row["group"]: row for row in kgctl.rows("groups", *command, f"{recent}|{late}")}
            assert (rows[recent]["lag"], rows[recent]["verdict"]) == (6, "OK"), rows[recent]["verdict_reason"]
            assert "no unread record is older than 90 s" in rows[recent]["verdict_reason"]
            assert (rows[late]["lag"], rows[late]["verdict"]) == (6, None)
        (finding,) = kgctl.rows("groups", "doctor", recent)
        assert finding["verdict"] == "OK"


def test_samples_give_rates_and_wide_tables_the_lag_in_time(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=1)
    (row,) = kgctl.rows("groups", "list", "--match", group, "--sample", "1s")
    assert row["rate_in"] == 0
    assert row["time_lag_ms"] >= 0
    wide = kgctl("groups", "list", "--match", group, "-o", "wide", "--explain")
    header = wide.stdout.splitlines()[0].split()
    assert "TIME-LAG" in header
    assert "RATE-IN" not in header
    assert "Rates and ETA need several snapshots: add --sample 5s -o wide." in wide.stderr


def test_names_and_listed_columns_are_those_of_all_groups(kgctl: Kgctl, topic: str) -> None:
    stem = fresh("g")
    for name in ("a", "b"):
        kgctl.commit(f"{stem}-{name}", topic, p0=1)
    chosen = ["groups", "list", "--match", f"{stem}-."]
    assert kgctl(*chosen, "-o", "name").stdout.split() == [f"{stem}-a", f"{stem}-b"]
    assert kgctl(*chosen, "-o", "name", "--min-lag", "100").stdout == ""
    lines = kgctl(*chosen, "--columns", "state,group", "--no-headers").stdout.splitlines()
    assert [line.split() for line in lines] == [["Empty", f"{stem}-a"], ["Empty", f"{stem}-b"]]


def test_ages_and_rates_are_sorted_by_size() -> None:
    rows = [
        GroupOverview(name, last_commit_age_ms=ms, rate_in=ms / 1000) for name, ms in (("a", 9_000), ("b", 110_000))
    ]
    for column in ("last-commit", "rate-in"):
        selection = Selection(sort=(SortKey(column, descending=True),))
        assert [row.group for row in selection.sorted(rows, LAYOUTS["groups"])] == ["b", "a"]


def test_a_pattern_that_is_not_a_regular_expression_is_a_usage_error(kgctl: Kgctl) -> None:
    result = kgctl("groups", "list", "--match", "[")
    assert result.exit_code == 2
    assert "'[' is not a regular expression" in " ".join(result.stderr.split())


# --- describe: summary and topics ---


def test_a_summary_has_one_line_per_group(kgctl: Kgctl, topic: str) -> None:
    stem = fresh("g")
    empty, live = f"{stem}-empty", f"{stem}-live"
    kgctl.commit(empty, topic, p0=3, p1=1)
    with member_of(kgctl, live, {topic: [0, 1]}):
        rows = {row["group"]: row for row in kgctl.rows("groups", "describe", empty, live, "--summary")}

    shown = ("members", "topics", "partitions", "lag", "worst_partition", "worst_lag")
    assert [rows[empty][key] for key in shown] == [0, 1, 2, 16, f"{topic}-1", 9]
    assert [rows[live][key] for key in shown[:3]] == [1, 1, 2]


def test_a_summary_does_not_repeat_states_as_sentences(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=3)
    assert kgctl("groups", "describe", group, "--summary").stderr == ""


def test_only_one_topic_is_described(kgctl: Kgctl, topic: str) -> None:
    group, other = fresh("g"), fresh("other")
    assert kgctl("topics", "create", other).exit_code == 0
    kgctl.commit(group, topic, p0=1)
    (before,) = kgctl.rows("groups", "describe", group, "--summary")
    kgctl.commit(group, other, p0=0)

    rows = kgctl.rows("groups", "describe", group, "--topic", topic)
    assert [(row["topic"], row["partition"]) for row in rows] == [(topic, 0)]
    (row,) = kgctl.rows("groups", "describe", group, "--summary", "--topic", topic)
    assert (row["topics"], row["lag"], row["last_commit_ms"]) == (1, 9, before["last_commit_ms"])
    result = kgctl("groups", "describe", group, "--topic", "no-such-topic")
    assert result.exit_code == 5
    assert f"group '{group}' has no committed offsets and no members in topic 'no-such-topic'" in result.stderr


def test_verbose_members_show_their_subscriptions(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    with member_of(kgctl, group, {topic: [0]}):
        (row,) = kgctl.rows("groups", "describe", group, "--members")
        assert row["subscribed"] == [topic]
        header, line = kgctl("groups", "describe", group, "--members", "--verbose").stdout.splitlines()
    assert "SUBSCRIBED" in header
    assert topic in line.split()


def test_generation_timeouts_and_age_are_known_on_every_cluster(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    with member_of(kgctl, group, {topic: [0]}):
        (state,) = kgctl.rows("groups", "describe", group, "--state")
        (member,) = kgctl.rows("groups", "describe", group, "--members")
    assert (state["generation"], member["generation"], member["leader"]) == (1, 1, True)
    assert member["session_timeout_ms"] > 0
    assert member["rebalance_timeout_ms"] > 0
    assert 0 <= state["offsets_partition"] < 50


def test_pending_offsets_of_an_open_transaction_are_named(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=1, p1=1)
    reader = Consumer({"bootstrap.servers": kgctl.bootstrap, "group.id": group})
    with opened(kgctl, topic) as (transactional_id, producer):
        producer.send_offsets_to_transaction([TopicPartition(topic, 1, 5)], reader.consumer_group_metadata(), 30)
        result = kgctl("groups", "describe", group)
    reader.close()

    sentence = (
        f"Warning: Group '{group}' has pending offsets for {topic}-1 in the open transaction of transactional id "
        f"'{transactional_id}'; they are committed or dropped when it ends."
    )
    assert sentence in result.stderr.splitlines()
    assert "pending" not in kgctl("groups", "describe", group).stderr
