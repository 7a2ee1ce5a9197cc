"""Compares the tables of a run with the logs and with what the traffic was acknowledged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.kgctl.pipelines.runs import rows
from tests.kgctl.pipelines.transforms import oracle_evaluate, oracle_lag
from tests.kgctl.pipelines.truth.logs import Logs, milliseconds
from tests.kgctl.pipelines.truth.traffic import GROUPS, Place, Traffic

Row = dict[str, Any]


def check_commits(out: Path, logs: Logs, traffic: Traffic) -> None:
    found = of_users(rows(out, "commits"))
    assert once(found, "log_partition", "log_offset") == {
        place: dict(zip(_COMMIT, row, strict=True)) for place, row in logs.decoded("commits").items()
    }
    by_place = defaultdict(list)
    for row in sorted(found, key=lambda row: row["log_offset"]):
        by_place[row["group"], row["topic"], row["part"]].append(row["committed"])
    assert dict(by_place) == traffic.commits
    assert rows(out, "quarantine") == []


def check_group_events(out: Path, logs: Logs) -> None:
    found = once(of_users(rows(out, "group_events")), "log_partition", "log_offset")
    wanted = logs.decoded("group_events")
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
        _,
        at,
    ) in wanted.items():
        row = found[place]
        names = ("group", "generation", "protocol_type", "protocol", "leader", "state_ts", "tombstone", "log_ts")
        assert tuple(row[name] for name in names) == (
            *(group, generation, protocol_type, protocol, leader, state, gone, at),
        )
        assert [(one["member_id"], one["assigned"]) for one in row["members"] or []] == [
            (member[0], [{"topic": topic, "parts": parts} for topic, parts in member[-1]]) for member in members or []
        ]


def check_log_ends(out: Path, logs: Logs, step_ms: int) -> None:
    """Ends that were looked up by time are exact; those sampled during traffic lie between its records."""
    found = rows(out, "log_ends")
    places = {(row["topic"], row["part"], row["at"]) for row in found}
    assert len(places) == len(found)
    for row in found:
        at_ms = milliseconds(row["at"])
        end = logs.end_at(row["topic"], row["part"], at_ms)
        if row["source"] == "by_timestamp":
            assert row["log_end"] == end, row
        else:
            assert end <= row["log_end"] <= max(logs.times[row["topic"], row["part"]]) + 1, row
    points = sorted({milliseconds(row["at"]) for row in found})
    sampled = {milliseconds(row["at"]) for row in found if row["source"] == "sampled"}
    steps = [at_ms for at_ms in points if at_ms not in sampled]
    assert all(at_ms % step_ms == 0 for at_ms in steps)
    # No step is left out, unless a run ended exactly there.
    assert set(range(steps[0], steps[-1], step_ms)) <= set(points)
    first = min(milliseconds(row[6]) for row in logs.decoded("commits").values() if row[6] is not None)
    assert steps[0] - first <= step_ms


def check_lag(out: Path, logs: Logs) -> None:
    """Against the log ends of the table, which have a check of their own."""
    found = of_users(rows(out, "f_lag"))
    ends = [
        (row["topic"], row["part"], milliseconds(row["at"]) / 1000, row["log_end"], row["source"])
        for row in rows(out, "log_ends")
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
        assert seen[key] == pytest.approx(row), key


def check_health(out: Path, logs: Logs) -> None:
    """The last evaluation. The end of the logs must not have moved since."""
    found = of_users(rows(out, "health"))
    at_ms = max(milliseconds(row["at"]) for row in found)
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


def check_rebalances(out: Path, traffic: Traffic, kind: str) -> None:
    found = {(row["group"], row["generation"]): row for row in of_users(rows(out, "f_rebalance"))}
    assert len(found) == len(of_users(rows(out, "f_rebalance")))
    wanted = {(group, generation): members for group, generation, members in traffic.rebalances}
    assert found.keys() == wanted.keys()
    for (group, generation), members in wanted.items():
        row, before = found[group, generation], wanted.get((group, generation - 1), frozenset())
        assert row["members"] == len(members)
        assert (set(row["joined"]), set(row["left"])) == (members - before, before - members)
        assert (row["duration_ms"] is not None) == (kind == "kgctl"), row
        assert row["duration_source"] == ("events" if kind == "kgctl" else "log")


def check_commit_rates(out: Path, logs: Logs, step_ms: int) -> None:
    """Every window that was over when the newest run asked, counted once; windows without commits have no row."""
    until_ms = max(milliseconds(row["at"]) for row in rows(out, "health"))
    wanted: dict[tuple[Place, int], list[int | None]] = defaultdict(list)
    for key, second, offset in _history(logs):
        begin_ms = round(second * 1000) // step_ms * step_ms
        if begin_ms + step_ms <= until_ms:
            wanted[key, begin_ms].append(offset)
    found = of_users(rows(out, "f_commit"))
    seen = {(place_of(row), milliseconds(row["w_start"])): row for row in found}
    assert len(seen) == len(found)
    assert seen.keys() == wanted.keys()
    for window, offsets in wanted.items():
        row, commits = seen[window], [offset for offset in offsets if offset is not None]
        assert (row["commits"], row["deletions"]) == (len(commits), len(offsets) - len(commits)), row
        assert (row["first"], row["last"]) == ((commits[0], commits[-1]) if commits else (None, None)), row


def check_churn(out: Path, traffic: Traffic) -> None:
    """Every member of the traffic has left."""
    wanted = {(group, member) for group, _, members in traffic.rebalances for member in members}
    sessions = of_users(rows(out, "f_session"))
    assert {(row["group"], row["member_id"]) for row in sessions} == wanted
    assert len(sessions) == len(wanted)
    churn = of_users(rows(out, "f_churn"))
    for group in {name for name, _ in wanted}:
        members = sum(name == group for name, _ in wanted)
        moves = [(row["joins"], row["leaves"]) for row in churn if row["group"] == group]
        assert tuple(map(sum, zip(*moves, strict=True))) == (members, members), group


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


def of_users(found: list[Row]) -> list[Row]:
    """Without the positions that runs publish."""
    return [row for row in found if row["group"] in GROUPS]


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
