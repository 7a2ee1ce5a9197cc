"""Compares the tables of a run with the logs and with what the traffic was acknowledged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest

from tests.kgctl.pipelines.transforms import oracle_evaluate, oracle_lag
from tests.kgctl.pipelines.truth import checks_anomalies, checks_members, checks_topics, checks_transactions
from tests.kgctl.pipelines.truth.logs import Logs, milliseconds
from tests.kgctl.pipelines.truth.traffic import Place
from tests.kgctl.pipelines.truth.world import STEP_MS, Row, World

MOST_POINTS = 300


def check_commits(world: World) -> None:
    found = world.of_users("commits")
    assert once(found, "log_partition", "log_offset") == {
        place: dict(zip(_COMMIT, row, strict=True)) for place, row in world.logs.decoded("commits").items()
    }
    by_place = defaultdict(list)
    for row in sorted(found, key=lambda row: row["log_offset"]):
        by_place[row["group"], row["topic"], row["part"]].append(row["committed"])
    assert dict(by_place) == world.traffic.commits


def check_quarantine(world: World) -> None:
    assert world.rows("quarantine") == []


def check_group_events(world: World) -> None:
    found = once(world.of_users("group_events"), "log_partition", "log_offset")
    wanted = world.logs.decoded("group_events")
    assert found.keys() == wanted.keys()
    for place, (
        group,
        _,
        generation,
        _,
        protocol_type,
        protocol,
        leader,
        state,
        gone,
        members,
        version,
        at,
    ) in wanted.items():
        row = found[place]
        names = ("group", "generation", "protocol_type", "protocol", "leader", "state_ts", "tombstone", "log_ts")
        assert tuple(row[name] for name in names) == (
            *(group, generation, protocol_type, protocol, leader, state, gone, at),
        )
        assert (row["kind"], row["group_type"], row["value_version"]) == ("GroupMetadata", "classic", version)
        assert [(one["member_id"], one["assigned"]) for one in row["members"] or []] == [
            (member[0], [{"topic": topic, "parts": parts} for topic, parts in member[-1]]) for member in members or []
        ]


def check_log_ends(world: World) -> None:
    """Ends that were looked up by time are exact; those sampled during traffic lie between its records."""
    found, logs = world.rows("log_ends"), world.logs
    places = {(row["topic"], row["part"], row["at"]) for row in found}
    assert len(places) == len(found)
    partitions = {place[1:] for place in world.traffic.commits}
    assert places == {(*place, row["at"]) for row in found for place in partitions}
    for row in found:
        at_ms = milliseconds(row["at"])
        assert row["log_start"] == (0 if row["source"] == "sampled" else None)
        assert row["source"] == "sampled" or (row["source"] == "by_timestamp" and at_ms % STEP_MS == 0)
        end = logs.end_at(row["topic"], row["part"], at_ms)
        if row["source"] == "by_timestamp":
            assert row["log_end"] == end, row
        else:
            assert end <= row["log_end"] <= max(logs.times[row["topic"], row["part"]]) + 1, row
    points = sorted({milliseconds(row["at"]) for row in found})
    sampled = {milliseconds(row["at"]) for row in found if row["source"] == "sampled"}
    steps = [at_ms for at_ms in points if at_ms not in sampled]
    assert all(at_ms % STEP_MS == 0 for at_ms in steps)
    for begin, end in pairwise([steps[0], *sorted(sampled)]):
        due = set(range(begin - begin % STEP_MS + STEP_MS, end, STEP_MS))
        # No step is left out, but a run that has more of them than this takes longer steps.
        assert due <= set(points) if len(due) < MOST_POINTS else len(due & set(points)) >= MOST_POINTS // 3
    first = min(milliseconds(row[6]) for row in logs.decoded("commits").values() if row[6] is not None)
    assert steps[0] - first <= STEP_MS


def check_lag(world: World) -> None:
    """Against the log ends of the table, which have a check of their own."""
    found, logs = world.of_users("f_lag"), world.logs
    ends = [
        (row["topic"], row["part"], milliseconds(row["at"]) / 1000, row["log_end"], row["source"])
        for row in world.rows("log_ends")
    ]
    behind = {
        (topic, part, offset): time_ms / 1000
        for (topic, part), times in logs.times.items()
        for offset, time_ms in times.items()
    }
    wanted = oracle_lag.expected(_history(logs), ends, behind)
    seen = {
        (row["group"], row["topic"], row["part"], milliseconds(row["at"]) / 1000): tuple(
            row[name] for name in ("committed", "log_end", "lag", "lag_ms", "consume_rate", "produce_rate", "eta_s")
        )
        for row in found
    }
    assert len(seen) == len(found)
    assert seen.keys() == wanted.keys()
    for key, row in wanted.items():
        assert seen[key] == pytest.approx(row), (key, seen[key], row)


def check_health(world: World) -> None:
    """The last evaluation. The end of the logs must not have moved since."""
    found, logs = world.of_users("health"), world.logs
    at_ms = max(milliseconds(row["at"]) for row in found)
    assert len({(place_of(row), row["at"]) for row in found}) == len(found)
    last = {place_of(row): row for row in found if milliseconds(row["at"]) == at_ms}
    history: dict[Place, list[tuple[float, int | None]]] = defaultdict(list)
    for key, second, offset in _history(logs):
        history[key].append((second, offset))
    wanted = {}
    for key, commits in history.items():
        ends = {second: logs.end_at(*key[1:], 1000 * second) for second, offset in commits if offset is not None}
        recent_ms = at_ms - 1000 * oracle_evaluate.RECENT_S
        ends[recent_ms / 1000] = logs.end_at(*key[1:], recent_ms)
        ends[at_ms / 1000] = max(logs.times[key[1:]]) + 1
        judged = oracle_evaluate.expected(commits, sorted(ends.items()), at_ms / 1000)
        if judged is not None:
            wanted[key] = judged
    assert {
        key: (row["status"], row["lag"], pytest.approx(row["complete"]), pytest.approx(row["eta_s"]))
        for key, row in last.items()
    } == wanted


def check_rebalances(world: World) -> None:
    found = {(row["group"], row["generation"]): row for row in world.of_users("f_rebalance")}
    assert len(found) == len(world.of_users("f_rebalance"))
    wanted = {(group, generation): members for group, generation, members in world.traffic.rebalances}
    assert found.keys() == wanted.keys()
    has_causes, moments, starts = world.kind == "kgctl", checks_members.moments(world), checks_members.starts(world)
    for (group, generation), members in wanted.items():
        row, before = found[group, generation], wanted.get((group, generation - 1), frozenset())
        assert row["members"] == len(members)
        assert (set(row["joined"]), set(row["left"])) == (members - before, before - members)
        assert milliseconds(row["ended"]) == moments[group, generation]
        since = starts.get((group, generation))
        assert milliseconds(row["started"]) == since if has_causes else row["started"] is None
        assert row["duration_ms"] == (None if since is None else moments[group, generation] - since)
        assert row["duration_source"] == ("events" if has_causes else "log")
        # Members keep what they own, and only a log of generations has no other measure of skew.
        assert row["moved_parts"] == (0 if members else None)
        assert row["commits_rejected"] == (0 if has_causes else None)
        assert row["skew"] == (None if has_causes or not members else pytest.approx(skew_of(world, group, members)))
        cause = "member left" if before > members else "member joined"
        assert row["cause"] == (cause if has_causes else None)
        assert row["group_type"] == "classic"


def skew_of(world: World, group: str, members: frozenset[str]) -> float:
    """Partitions of the busiest member divided by the mean."""
    uneven = world.traffic.members
    if group != uneven.group:
        return 1.0
    parts = [sum(map(len, uneven.members[member].values())) for member in members]
    return max(parts) / fmean(parts)


def check_commit_rates(world: World) -> None:
    history: dict[Place, list[tuple[int, int | None]]] = defaultdict(list)
    for key, second, offset in _history(world.logs):
        history[key].append((round(1000 * second), offset))
    checks_members.check_commit_rates(world, history)


_COMMIT = (
    *("group", "topic", "part", "committed", "leader_epoch", "metadata"),
    *("commit_ts", "expire_ts", "value_version", "tombstone", "log_ts"),
)


def _history(logs: Logs) -> Iterable[oracle_lag.Commit]:
    """All commits in the order of the log; a tombstone counts from the time of its record."""
    for _, row in sorted(logs.decoded("commits").items(), key=lambda item: item[0][::-1]):
        commit = dict(zip(_COMMIT, row, strict=True))
        moment = commit["commit_ts"] or commit["log_ts"]
        yield place_of(commit), milliseconds(moment) / 1000, commit["committed"]


def place_of(row: Row) -> Place:
    return row["group"], row["topic"], row["part"]


def once(found: list[Row], *key: str) -> dict[Any, Row]:
    """Rows by their place, which is no longer in them; each place once."""
    by_key = {
        tuple(row[name] for name in key): {name: value for name, value in row.items() if name not in key}
        for row in found
    }
    assert len(by_key) == len(found)
    return by_key


CHECKS = {
    "commits": check_commits,
    "group_events": check_group_events,
    "quarantine": check_quarantine,
    "log_ends": check_log_ends,
    "f_lag": check_lag,
    "health": check_health,
    "f_rebalance": check_rebalances,
    "memberships": checks_members.check_memberships,
    "f_commit": check_commit_rates,
    "f_session": checks_members.check_sessions,
    "f_churn": checks_members.check_churn,
    "f_member_skew": checks_members.check_skew,
    "f_partition_skew": checks_members.check_skew,
    "f_expected": checks_anomalies.check_expected,
    "anomalies": checks_anomalies.check_anomalies,
    "f_retention": checks_topics.check_retention,
    "log_ages": checks_topics.check_log_ages,
    "f_compaction": checks_topics.check_compaction,
    "compaction_keys": checks_topics.check_compaction_keys,
    "f_transaction": checks_transactions.check_transactions,
    "f_producer": checks_transactions.check_producers,
    "f_hold": checks_transactions.check_holds,
}
