"""`kgctl groups` on a running cluster: output for people and scripts, and exit codes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of

HOUR_MS = 3_600_000


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    """Three partitions with 100, 50 and no records."""
    name = fresh("orders")
    assert kgctl("topics", "create", name, "--partitions", 3).exit_code == 0
    fill(kgctl, name, [100, 50, 0])
    return name


def offsets_of(kgctl: Kgctl, group: str) -> dict[int, int | None]:
    return {row["partition"]: row["current_offset"] for row in kgctl.rows("groups", "describe", group)}


# --- describe ---


def test_offsets_and_lag_of_an_empty_group(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=90, p2=0)
    result = kgctl("groups", "describe", group)
    assert result.exit_code == 0
    header, *rows = [line.split() for line in result.stdout.splitlines()]
    assert header == [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ]
    assert rows == [
        [group, topic, "0", "90", "100", "10", "-", "-", "-"],
        [group, topic, "2", "0", "0", "0", "-", "-", "-"],
    ]
    assert result.stderr == f"Consumer group '{group}' has no active members.\n"


def test_offsets_of_a_live_group_name_the_member_and_unknown_lag_is_null(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=40)
    with member_of(kgctl, group, {topic: [0, 1]}) as member_id:
        rows = kgctl.rows("groups", "describe", group)
        assert [
            (row["partition"], row["current_offset"], row["lag"], row["consumer_id"], row["client_id"]) for row in rows
        ] == [
            (0, 40, 60, member_id, "kgctl"),
            (1, None, None, member_id, "kgctl"),
        ]
        assert rows[0]["host"].startswith("/")


def test_two_groups_on_one_partition_are_not_mixed(kgctl: Kgctl, topic: str) -> None:
    one, two = sorted([fresh("one"), fresh("two")])
    kgctl.commit(one, topic, p0=10)
    kgctl.commit(two, topic, p0=20)
    rows = kgctl.rows("groups", "describe", one, two)
    assert [(row["group"], row["current_offset"], row["lag"]) for row in rows] == [(one, 10, 90), (two, 20, 80)]
    assert kgctl("groups", "reset-offsets", one, "--all-topics", "--to-latest", "--execute").exit_code == 0
    assert (offsets_of(kgctl, one), offsets_of(kgctl, two)) == ({0: 100}, {0: 20})


def test_members_are_shown_with_their_partitions_and_assignments(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    with member_of(kgctl, group, {topic: [2, 0]}, instance="i-1") as member_id:
        (row,) = kgctl.rows("groups", "describe", group, "--members")
        assert (row["consumer_id"], row["group_instance_id"], row["partitions"]) == (member_id, "i-1", 2)
        assert row["current_assignment"] == [{"topic": topic, "partitions": [0, 2]}]
        table = kgctl("groups", "describe", group, "--members", "--verbose").stdout
        assert f"{topic}:0,2" in table
        assert "GROUP-INSTANCE-ID" in table


def test_state_has_coordinator_assignor_and_members(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    with member_of(kgctl, group, {topic: [0]}):
        (row,) = kgctl.rows("groups", "describe", group, "--state")
    assert (row["coordinator"], row["assignment_strategy"], row["state"], row["members"]) == (
        kgctl.bootstrap,
        "range",
        "Stable",
        1,
    )


def test_the_generation_is_shown_where_the_broker_reports_it(our_cluster: Cluster) -> None:
    kgctl = Kgctl(our_cluster.bootstrap_servers)
    topic, group = fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic).exit_code == 0
    for generation in (1, 3):  # each leave creates an empty generation
        with member_of(kgctl, group, {topic: [0]}):
            assert [row["generation"] for row in kgctl.rows("groups", "describe", group, "--state")] == [generation]
            (member,) = kgctl.rows("groups", "describe", group, "--members")
            assert (member["generation"], member["leader"], member["session_timeout_ms"]) == (generation, True, 30_000)


def test_a_missing_group_exits_with_5_and_beside_others_with_4(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=1)
    for view in ("--offsets", "--members", "--state"):
        result = kgctl("groups", "describe", "no-such-group", view)
        assert (result.exit_code, result.stderr) == (5, "Error: Consumer group 'no-such-group' does not exist.\n")
        beside = kgctl("groups", "describe", "no-such-group", group, view)
        assert beside.exit_code == 4
        assert "Error: Consumer group 'no-such-group' does not exist." in beside.stderr
        for output in ("json", "yaml", "csv"):
            failed = kgctl("groups", "describe", "no-such-group", view, "-o", output)
            assert failed.exit_code == 5
            assert "no-such-group" in failed.stdout
            assert "NOT_FOUND" in failed.stdout
    assert group in beside.stdout


def test_the_option_all_describes_every_group(kgctl: Kgctl, topic: str) -> None:
    groups = {fresh("g"), fresh("g")}
    for group in groups:
        kgctl.commit(group, topic, p0=1)
    assert groups <= {row["group"] for row in kgctl.rows("groups", "describe", "--all", "--state")}


# --- reset ---


def test_a_reset_is_a_dry_run_unless_it_is_executed(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=60, p1=50)
    planned = kgctl("groups", "reset-offsets", group, "--all-topics", "--shift-by", -20)
    assert planned.exit_code == 0
    assert planned.stderr == "Dry run: nothing was changed. Add --execute to apply the plan.\n"
    assert offsets_of(kgctl, group) == {0: 60, 1: 50}
    done = kgctl("groups", "reset-offsets", group, "--all-topics", "--shift-by", -20, "--execute")
    assert done.exit_code == 0
    assert [line.split()[1:7] for line in done.stdout.splitlines()[1:]] == [
        [topic, "0", "60", "40", "-20", "done"],
        [topic, "1", "50", "30", "-20", "done"],
    ]
    assert offsets_of(kgctl, group) == {0: 40, 1: 30}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (["--to-earliest"], {0: 0, 1: 0, 2: 0}),
        (["--to-latest"], {0: 100, 1: 50, 2: 0}),
        (["--to-offset", 70], {0: 70, 1: 50, 2: 0}),
        (["--to-current"], {0: 60, 1: 50, 2: 0}),
        (["--by-duration", "PT1H"], {0: 0, 1: 0, 2: 0}),
        (["--to-datetime", "2050-01-01T00:00:00.000"], {0: 100, 1: 50, 2: 0}),
    ],
)
def test_each_strategy_gives_the_offsets_of_kafkas_tool(
    kgctl: Kgctl, topic: str, strategy: list[object], expected: dict[int, int]
) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=60)
    assert kgctl("groups", "reset-offsets", group, "--topic", topic, *strategy, "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == expected


def test_a_reset_by_time_finds_the_first_record_at_or_after_that_time(kgctl: Kgctl) -> None:
    topic, group = fresh("timed"), fresh("g")
    assert kgctl("topics", "create", topic, "--partitions", 1).exit_code == 0
    fill(kgctl, topic, [10], timestamp_ms=int(time.time() * 1000) - 3 * HOUR_MS)
    fill(kgctl, topic, [5], timestamp_ms=int(time.time() * 1000) - HOUR_MS)
    for duration, offset in (("PT4H", 0), ("PT2H", 10), ("PT30M", 15)):
        assert (
            kgctl(
                "groups", "reset-offsets", group, "--topic", topic, "--by-duration", duration, "--create", "--execute"
            ).exit_code
            == 0
        )
        assert offsets_of(kgctl, group) == {0: offset}


def test_an_exported_plan_can_be_executed_from_its_file(kgctl: Kgctl, topic: str, tmp_path: object) -> None:
    group, other = fresh("g"), fresh("other")
    kgctl.commit(group, topic, p0=60, p1=50)
    exported = kgctl("groups", "reset-offsets", group, "--all-topics", "--shift-by", -10, "--export")
    assert (exported.stdout, exported.stderr) == (f"{topic},0,50\n{topic},1,40\n", "")
    assert offsets_of(kgctl, group) == {0: 60, 1: 50}
    for name, plan in ((group, exported.stdout), (other, f"{other},{topic},0,7\nanother,{topic},1,8\n")):
        result = kgctl("groups", "reset-offsets", name, "--from-file", "-", "--create", "--execute", text=plan)
        assert result.exit_code == 0, result.output
    assert offsets_of(kgctl, group) == {0: 50, 1: 40}
    assert offsets_of(kgctl, other) == {0: 7}
    assert kgctl("groups", "reset-offsets", "third", "--from-file", "-", text=f"{other},{topic},0,7\n").exit_code == 5


def test_a_reset_of_a_group_with_members_exits_with_6_and_changes_nothing(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=60)
    with member_of(kgctl, group, {topic: [0]}):
        result = kgctl("groups", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute")
        assert result.exit_code == 6
        assert result.stdout.splitlines()[1].split()[1:7] == [topic, "0", "60", "0", "-60", "skipped"]
        assert "or evict them with `kgctl groups reset-offsets --drain`." in result.stderr
        assert (
            f"Error: Assignments can only be reset if the group '{group}' is inactive, but the current state is Stable."
            in result.stderr
        )
        assert offsets_of(kgctl, group) == {0: 60}


def test_a_dry_run_for_a_group_with_members_shows_its_plan_with_a_warning(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=60)
    with member_of(kgctl, group, {topic: [0]}):
        planned = kgctl("groups", "reset-offsets", group, "--all-topics", "--to-earliest")
        assert planned.exit_code == 0
        assert planned.stdout.splitlines()[1].split()[:7] == [group, topic, "0", "60", "0", "-60", "planned"]
        assert f"Warning: Consumer group '{group}' is Stable: --execute is refused" in planned.stderr
        assert "Add --execute" not in planned.stderr
        exported = kgctl("groups", "reset-offsets", group, "--all-topics", "--to-earliest", "--export")
        assert (exported.exit_code, exported.stdout) == (0, f"{topic},0,0\n")
        assert "Warning: Consumer group" in exported.stderr


def test_the_notes_of_an_exported_plan_go_to_stderr(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    arguments = ("groups", "reset-offsets", group, "--topic", f"{topic}:0", "--create", "--export")
    clamped = kgctl(*arguments, "--to-offset", 500)
    assert clamped.stdout == f"{topic},0,100\n"
    assert f"Note: {topic}-0: 500 is after the end of the log: clamped\n" in clamped.stderr
    latest = kgctl(*arguments, "--to-datetime", "2050-01-01T00:00:00.000")
    assert f"Note: {topic}-0: no record at or after that time: latest\n" in latest.stderr


def test_a_plan_with_a_partition_that_does_not_exist_changes_nothing(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=60)
    arguments = ("groups", "reset-offsets", group, "--topic", f"{topic}:0,3", "--to-earliest")
    planned = kgctl(*arguments)
    assert planned.exit_code == 5
    assert "Dry run: nothing was changed. 1 row has an error; the plan cannot be applied.\n" in planned.stderr
    result = kgctl(*arguments, "--execute")
    assert result.exit_code == 5
    assert "Nothing was changed." in result.stderr
    assert [(line.split()[6], line.split()[-1]) for line in result.stdout.splitlines()[1:]] == [
        ("skipped", "-"),
        ("failed", "UNKNOWN_TOPIC_OR_PARTITION"),
    ]
    assert offsets_of(kgctl, group) == {0: 60}


def test_a_missing_topic_is_a_row_without_a_partition(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=60)
    for arguments in (["reset-offsets", group, "--to-latest"], ["delete-offsets", group]):
        result = kgctl("groups", *arguments, "--topic", "no-such-topic")
        assert result.exit_code == 5
        assert " -1 " not in result.stdout
        (row,) = json.loads(kgctl("groups", *arguments, "--topic", "no-such-topic", "-o", "json").stdout)["rows"]
        assert (row["topic"], row["partition"]) == ("no-such-topic", None)


def test_a_reset_that_creates_its_group_says_so_in_plan_and_outcome(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    arguments = ("groups", "reset-offsets", group, "--topic", topic, "--to-earliest", "--create")
    assert kgctl(*arguments[:-1]).exit_code == 5
    assert f"Consumer group '{group}' does not exist yet; --execute creates it.\n" in kgctl(*arguments).stderr
    assert kgctl(*arguments, "--execute").stderr == f"Created consumer group '{group}', which did not exist.\n"


def test_a_plan_with_a_byte_order_mark_is_read(kgctl: Kgctl, topic: str, tmp_path: Path) -> None:
    group, plan = fresh("g"), tmp_path / "plan.csv"
    plan.write_bytes(b"\xef\xbb\xbf" + f"{topic},0,7\r\n".encode())
    assert kgctl("groups", "reset-offsets", group, "--from-file", plan, "--create", "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 7}


def test_a_shift_without_a_commit_exits_with_6(kgctl: Kgctl, topic: str) -> None:
    result = kgctl("groups", "reset-offsets", fresh("g"), "--topic", f"{topic}:0", "--shift-by", 1, "--create")
    assert result.exit_code == 6
    assert f"Cannot shift offset for partition {topic}-0 since there is no current committed offset" in result.stderr


def test_a_group_without_commits_has_nothing_to_reset(kgctl: Kgctl) -> None:
    assert kgctl("groups", "reset-offsets", fresh("g"), "--all-topics", "--to-earliest").exit_code == 5


# --- removal ---


def test_members_are_removed_only_when_executed_and_named(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    with member_of(kgctl, group, {topic: [0]}) as member_id:
        planned = kgctl("groups", "remove-members", group, "--all")
        assert planned.exit_code == 0
        assert member_id in planned.stdout
        (row,) = kgctl.rows("groups", "describe", group, "--state")
        assert row["members"] == 1
        partly = kgctl(
            "groups",
            "remove-members",
            group,
            "--member",
            "absent",
            "--member",
            member_id,
            "--reason",
            "test",
            "--execute",
        )
        assert partly.exit_code == 4
        assert f"Group '{group}' has no member 'absent'." in partly.stderr
        (row,) = kgctl.rows("groups", "describe", group, "--state")
        assert (row["state"], row["members"]) == ("Empty", 0)


def test_a_static_member_is_removed_by_its_instance_id(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    with member_of(kgctl, group, {topic: [0]}, instance="i-1"):
        assert kgctl("groups", "remove-members", group, "--instance", "i-1", "--execute").exit_code == 0
        assert kgctl.rows("groups", "describe", group, "--members") == []
        assert kgctl("groups", "remove-members", group, "--instance", "i-1", "--execute").exit_code == 5


def test_removing_members_of_a_missing_group_exits_with_5(kgctl: Kgctl) -> None:
    assert kgctl("groups", "remove-members", fresh("g"), "--all").exit_code == 5


def test_empty_groups_are_deleted_and_others_are_reported(kgctl: Kgctl, topic: str) -> None:
    empty, live, absent = fresh("empty"), fresh("live"), fresh("absent")
    kgctl.commit(empty, topic, p0=1)
    with member_of(kgctl, live, {topic: [0]}):
        assert kgctl("groups", "delete", empty).exit_code == 0
        assert kgctl("groups", "describe", empty).exit_code == 0
        assert kgctl("groups", "delete", live, "--execute").exit_code == 6
        planned = kgctl("groups", "delete", empty, live)
        assert planned.exit_code == 4
        assert "1 row has an error; add --execute to apply the others." in planned.stderr
        assert "1 row has an error; the plan cannot be applied.\n" in kgctl("groups", "delete", live).stderr
        assert kgctl("groups", "delete", absent, "--execute").exit_code == 5
        result = kgctl("groups", "delete", empty, live, absent, "--execute")
        assert result.exit_code == 4
        assert kgctl("groups", "describe", empty).exit_code == 5
        assert kgctl("groups", "describe", live).exit_code == 0


def test_committed_offsets_are_deleted_by_partition(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=1, p1=2)
    assert kgctl("groups", "delete-offsets", group, "--topic", f"{topic}:0").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 1, 1: 2}
    assert kgctl("groups", "delete-offsets", group, "--topic", f"{topic}:0", "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {1: 2}
    assert kgctl("groups", "delete-offsets", group, "--topic", f"{topic}:0", "--execute").exit_code == 5
    with member_of(kgctl, group, {topic: [1]}):
        for arguments in ([], ["--execute"]):
            refused = kgctl("groups", "delete-offsets", group, "--topic", topic, *arguments)
            assert refused.exit_code == 6
            assert "GROUP_SUBSCRIBED_TO_TOPIC" in refused.stdout
            assert "Add --execute" not in refused.stderr
    assert kgctl("groups", "delete-offsets", group, "--topic", topic, "--execute").exit_code == 0
    emptied = kgctl("groups", "delete-offsets", group, "--all-topics")
    assert emptied.exit_code in (0, 5)  # our broker keeps a group without commits, Kafka may not
    if not emptied.exit_code:
        assert "There is nothing to do." in emptied.stderr


@pytest.mark.parametrize("arguments", [["--all-topics"], ["--all-topics", "--execute"], ["--topic", "t", "--execute"]])
def test_deleting_offsets_of_a_missing_group_exits_with_5(kgctl: Kgctl, arguments: list[str]) -> None:
    result = kgctl("groups", "delete-offsets", "no-such-group", *arguments)
    assert (result.exit_code, result.stdout) == (5, "")
    assert result.stderr == "Error: Consumer group 'no-such-group' does not exist.\n"


# --- rebalance ---


def test_a_rebalance_is_planned_then_triggered_and_awaited(our_cluster: Cluster) -> None:
    kgctl, group = Kgctl(our_cluster.bootstrap_servers), fresh("g")
    with member_of(kgctl, group, {"t": [0]}) as member_id:
        planned = kgctl("groups", "rebalance", group)
        assert (planned.exit_code, planned.stderr) == (
            0,
            "Dry run: nothing was changed. Add --execute to apply the plan.\n",
        )
        assert member_id in planned.stdout
        (row,) = kgctl.rows("groups", "describe", group, "--state")
        assert (row["state"], row["generation"]) == ("Stable", 1)
        (row,) = kgctl.rows("groups", "rebalance", group, "--execute")
        assert (row["consumer_id"], row["method"], row["generation_before"], row["status"]) == (
            member_id,
            "trigger",
            1,
            "done",
        )
        (row,) = kgctl.rows("groups", "describe", group, "--state")
        assert row["state"] == "PreparingRebalance"
        # The member sends no heartbeats, so it does not rejoin in time.
        late = kgctl("groups", "rebalance", group, "--wait", "--execute", "--timeout", "2")
        assert late.exit_code == 3
        assert "TIMED_OUT" in late.stdout
        assert f"group '{group}' is PreparingRebalance and not yet Stable in a newer generation" in late.stderr


def test_a_rebalance_exits_with_6_without_members_and_with_5_without_the_group(our_cluster: Cluster) -> None:
    kgctl, group = Kgctl(our_cluster.bootstrap_servers), fresh("g")
    assert kgctl("groups", "rebalance", group, "--execute").exit_code == 5
    with member_of(kgctl, group, {"t": [0]}):
        pass
    empty = kgctl("groups", "rebalance", group, "--execute")
    assert (empty.exit_code, empty.stderr) == (
        6,
        f"Error: Consumer group '{group}' has no active members to rebalance.\n",
    )


def test_a_name_that_no_request_can_hold_is_a_usage_error(kgctl: Kgctl) -> None:
    for command in (["groups", "describe"], ["topics", "describe"], ["topics", "create"]):
        result = kgctl(*command, "x" * 70_000)
        assert result.exit_code == 2
        assert "'xxxxxxxxxxxxxxxxxxxx...' has 70000 bytes; a string has at most 32767" in result.stderr
