"""Compares the tables about members and their commits with the traffic and the logs: who came and left, and what each holds."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from statistics import median
from typing import Any

import pytest

from tests.kgctl.pipelines.transforms.test_skew import Assigned, expected_members, expected_partitions
from tests.kgctl.pipelines.truth.traffic import GROUPS, RESTARTING, TOPICS
from tests.kgctl.pipelines.truth.world import STEP_MS, Row, World, by_key, ms

CHURN_MS = 60 * STEP_MS
ENDS = ("stable", "empty")
CLIENT, HOST = "kgctl", "/127.0.0.1"
# The columns of both tables of skew that their oracles give, in their order.
OF_MEMBER = (
    *("group_members", "parts", "parts_unknown", "lag", "consume_rate", "produce_rate"),
    *("parts_ratio", "lag_ratio", "consume_rate_ratio", "produce_rate_ratio"),
)
OF_PARTITION = (
    *("members", "lag", "consume_rate", "produce_rate"),
    *("lag_share", "lag_ratio", "consume_rate_ratio", "produce_rate_ratio"),
)


def moments(world: World) -> dict[tuple[str, int], int]:
    """When each generation began, in ms: in the events of kgctl's broker, or when the record of the group was written."""
    if world.kind == "kgctl":
        return {(one["group"], one["generation"]): one["timestamp"] for one in events(world) if one["event"] in ENDS}
    found: dict[tuple[str, int], int] = {}
    for _, row in sorted(world.logs.decoded("group_events").items()):
        group, generation, written_at = row[0], row[2], row[-1]
        if generation is not None:
            found.setdefault((group, generation), ms(written_at) or 0)
    return found


def events(world: World) -> list[Row]:
    """The history of groups, which kgctl's broker records."""
    logs = world.stored.of_topic("__kgctl_group_events")
    return [json.loads(one.value or b"") for log in logs.values() for one in log.records()]


def starts(world: World) -> dict[tuple[str, int], int]:
    """When each rebalance started, by the generation that it led to; only kgctl's broker records it."""
    since: dict[str, int] = {}
    found = {}
    for one in events(world):
        group = one["group"]
        if one["event"] == "rebalance_started":
            since.setdefault(group, one["timestamp"])
        elif one["event"] in ENDS:
            took_ms = (one["prepare_ms"] or 0) + (one["complete_ms"] or 0)
            found[group, one["generation"]] = since.pop(group, one["timestamp"] - took_ms)
    return found


def changes(world: World) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Generation and time of each event, by group, event and member."""
    when = moments(world)
    found = {}
    members = {(group, generation): some for group, generation, some in world.traffic.rebalances}
    for (group, generation), some in members.items():
        before = members.get((group, generation - 1), frozenset())
        place = (generation, when[group, generation])
        found.update({(group, "joined", member): place for member in some - before})
        found.update({(group, "left", member): place for member in before - some})
    return found


def check_memberships(world: World) -> None:
    found = by_key(world.of_users("memberships"), "group", "event", "member_id")
    wanted = changes(world)
    assert {key: (row["generation"], ms(row["at"])) for key, row in found.items()} == wanted
    has_causes = world.kind == "kgctl"
    for (_, event, _), row in found.items():
        assert (row["group_type"], row["members"], row["instance_id"], row["client_id"]) == (
            *("classic", 1, None, CLIENT),
        )
        assert row["cause"] == ("member left" if has_causes and event == "left" else None)
        assert row["source"] == ("events" if has_causes else "log")
        assert row["client_host"] == (None if has_causes else HOST)


def check_sessions(world: World) -> None:
    wanted = changes(world)
    found = by_key(world.of_users("f_session"), "group", "member_id")
    assert found.keys() == {(group, member) for group, event, member in wanted if event == "left"}
    for (group, member), row in found.items():
        start, end = wanted[group, "joined", member][1], wanted[group, "left", member][1]
        assert (ms(row["started"]), ms(row["ended"]), row["session_ms"]) == (start, end, end - start)
        assert (row["client_id"], row["client_host"], row["instance_id"]) == (CLIENT, HOST, None)
        source, cause = ("events", "member left") if world.kind == "kgctl" else ("log", None)
        assert (row["group_type"], row["source"], row["cause"]) == ("classic", source, cause)


def check_churn(world: World) -> None:
    """A run with --once cuts windows where it ends; those of a group follow each other."""
    happened = changes(world)
    found = by_key(world.of_users("f_churn"), "group", "client_host", "w_start")
    assert {host for _, host, _ in found} == {HOST}
    counted: set[tuple[str, str, str]] = set()
    for (group, *_), row in found.items():
        start, end = window(row, CHURN_MS)
        inside = {
            (event, member): at
            for (name, event, member), (_, at) in happened.items()
            if name == group and start <= at < end
        }
        counted |= {(group, *key) for key in inside}
        stays = {
            member: at - happened[group, "joined", member][1]
            for (event, member), at in inside.items()
            if event == "left"
        }
        lengths, short = sorted(stays.values()), sum(stay < CHURN_MS for stay in stays.values())
        wanted = {
            "joins": len(inside) - len(stays),
            "leaves": len(stays),
            "timed_out": 0,
            "leaves_unexplained": 0 if world.kind == "kgctl" else len(stays),
            "restarts": 0,
            "fenced": 0,
            "members": len({member for _, member in inside}),
            "unnamed": 0,
            "sessions": len(stays),
            "sessions_unknown": 0,
            "session_min_ms": min(lengths, default=None),
            "session_median_ms": pytest.approx(median(lengths)) if lengths else None,
            "session_max_ms": max(lengths, default=None),
            "short_sessions": short,
            "flapping": [CLIENT] if short >= 3 else [],
            "group_type": "classic",
            "source": "events" if world.kind == "kgctl" else "log",
        }
        assert {name: row[name] for name in wanted} == wanted, row
    assert counted == happened.keys()
    apart(found.values(), "group")


def window(row: Row, step_ms: int) -> tuple[int, int]:
    start, end = ms(row["w_start"]) or 0, ms(row["w_end"]) or 0
    assert start < end <= start - start % step_ms + step_ms, row
    return start, end


def apart(rows: Iterable[Row], *key: str) -> None:
    """No window of a key begins before the one before has ended."""
    windows = defaultdict(list)
    for row in rows:
        windows[tuple(row[name] for name in key)].append((row["w_start"], row["w_end"]))
    for some in windows.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(some)))


def check_commit_rates(world: World, history: dict[Any, list[tuple[int, int | None]]]) -> None:
    """`history`: (time in ms, offset or None) of each partition of a group in the order of the log."""
    found = by_key(world.of_users("f_commit"), "group", "topic", "part", "w_start")
    until_ms = max(ms(row["at"]) or 0 for row in world.rows("health"))
    counted: dict[Any, int] = defaultdict(int)
    of_group = {place[0]: place[1] for place in log_partitions(world)}
    for (*key, _), row in found.items():
        start, end = window(row, STEP_MS)
        moves = history[tuple(key)]
        inside = [number for number, (at, _) in enumerate(moves) if start <= at < end]
        counted[tuple(key)] += len(inside)
        wanted = commits_of(moves, inside, end - start)
        wanted["complete"] = complete(world, of_group[key[0]], start, end)
        assert {name: row[name] for name in wanted} == wanted, row
    apart(found.values(), "group", "topic", "part")
    for key, moves in history.items():
        due = sum(at - at % STEP_MS + STEP_MS <= until_ms for at, _ in moves)
        assert due <= counted[key] <= len(moves), key


def commits_of(moves: list[tuple[int, int | None]], inside: list[int], length_ms: int) -> Row:
    offsets = [offset for offset in (moves[number][1] for number in inside) if offset is not None]
    moved, gaps = [], []
    for number in inside:
        before, after = moves[number - 1] if number else (0, None), moves[number]
        if before[1] is not None and after[1] is not None:
            moved.append(after[1] - before[1])
            gaps.append(after[0] - before[0])
    return {
        "commits": len(offsets),
        "rate": pytest.approx(1000 * len(offsets) / length_ms),
        "first": offsets[0] if offsets else None,
        "last": offsets[-1] if offsets else None,
        "advanced": sum(max(0, one) for one in moved) if moved else None,
        "rewinds": sum(one < 0 for one in moved),
        "rewound": -sum(min(0, one) for one in moved),
        "unmoved_share": pytest.approx(moved.count(0) / len(moved)) if moved else None,
        "gap_max_ms": max(gaps, default=None),
        "gap_median_ms": pytest.approx(median(gaps)) if gaps else None,
        "deletions": len(inside) - len(offsets),
    }


def log_partitions(world: World) -> set[tuple[str, int]]:
    """(group, partition of __consumer_offsets)."""
    return {(row[0], place[0]) for place, row in world.logs.decoded("commits").items()}


def complete(world: World, partition: int, start: int, end: int) -> Any:
    """Records between those that are visible are markers and records of aborted transactions."""
    visible = sorted(
        (offset, one.timestamp_ms) for (part, offset), one in world.logs.offsets.items() if part == partition
    )
    steps = [after[0] - before[0] for before, after in pairwise(visible) if start <= after[1] < end]
    return pytest.approx(len(steps) / sum(steps)) if steps else None


# ---- skew -------------------------------------------------------------------------------------------------------


def check_skew(world: World) -> None:
    """Each measurement follows from who has which partition and from the rows of f_lag at one point."""
    of_members, of_partitions = world.measured("f_member_skew"), world.measured("f_partition_skew")
    assert of_members.keys() == of_partitions.keys()
    lag = world.measured("f_lag")
    for at, found in of_partitions.items():
        is_newest = at == max(of_partitions)
        (point,) = {row["lag_at"] for row in found if row["lag_at"] is not None}
        assert point == max(lag) if is_newest else point in lag
        held = {
            (row["group"], row["topic"], row["part"]): tuple(
                row[name] for name in ("lag", "consume_rate", "produce_rate")
            )
            for row in lag[point]
            if row["group"] in GROUPS
        }
        members = [row for row in of_members[at] if row["group"] in GROUPS]
        assigned = assigned_of(world, members)
        if not is_newest:
            # A coordinator that restarts describes none.
            assigned = {key: owned for key, owned in assigned.items() if key in by_key(members, "group", "member_id")}
        by_member = by_key(members, "group", "member_id")
        assert {key: shown(row, OF_MEMBER) for key, row in by_member.items()} == about(expected_members(assigned, held))
        by_place = by_key([row for row in found if row["group"] in GROUPS], "group", "topic", "part")
        assert {key: shown(row, OF_PARTITION) for key, row in by_place.items()} == about(
            expected_partitions(assigned, held)
        )
        for row in members:
            assert (row["group_type"], row["instance_id"], row["client_id"], row["client_host"]) == (
                *("classic", None, CLIENT, HOST),
            )
            assert row["lag_at"] == (point if row["lag"] is not None and row["parts"] else None)


def assigned_of(world: World, members: list[Row]) -> Assigned:
    """The members that stay own what the traffic gave them; a member of another group that was seen had joined it just then."""
    uneven = world.traffic.members
    found: Assigned = {
        (uneven.group, member): [(topic, part) for topic, parts in owned.items() for part in parts]
        for member, owned in uneven.members.items()
    }
    for row in members:
        key = (row["group"], row["member_id"])
        if key not in found:
            assert GROUPS[row["group"]] == RESTARTING
            assert any(key[0] == group and key[1] in some for group, _, some in world.traffic.rebalances)
            owned = [(topic, part) for topic in world.traffic.topics_of(key[0]) for part in range(TOPICS[topic])]
            found[key] = owned if row["parts"] else []
    return found


def shown(row: Row, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def about(rows: dict[Any, tuple[Any, ...]]) -> dict[Any, tuple[Any, ...]]:
    """Sums of rates depend on their order."""
    return {
        key: tuple(pytest.approx(one) if isinstance(one, float) else one for one in row) for key, row in rows.items()
    }
