"""Sessions and churn: a small history by hand, random ones against plain Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from kgctl.pipelines.schemas.group_facts import CHURN, SESSIONS
from kgctl.pipelines.schemas.groups import GROUP_EVENTS, MEMBERSHIPS
from kgctl.pipelines.transforms.churn import churn, sessions, with_clients
from kgctl.pipelines.transforms.membership import CAME, FENCED, LEFT, RETURNED
from tests.kgctl.pipelines.transforms.test_commit_rates import window
from tests.kgctl.pipelines.transforms.test_lag import START, at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOST, OTHER = "/10.0.0.1", "/10.0.0.2"
BACK = "member joined"

Happened = tuple[str, str, float, str | None, str | None, str | None, str | None]


def rows_of(spark: SparkSession, happened: list[Happened]) -> DataFrame:
    """(group, event, second, member, instance, host, cause); a member that is null stands for five."""
    rows = [
        (group, "consumer", event, at(second), cause, member, instance, "c", host, 1 if member else 5, 1, "log")
        for group, event, second, member, instance, host, cause in happened
    ]
    return spark.createDataFrame(rows, MEMBERSHIPS.ddl)


def seconds(moment: Any) -> float | None:
    return None if moment is None else (moment - START.replace(tzinfo=None)).total_seconds()


def test_a_history_by_hand(spark: SparkSession) -> None:
    happened: list[Happened] = [
        ("g", LEFT, 2, "old", None, None, None),
        ("g", CAME, 3, "a", None, HOST, None),
        ("g", CAME, 5, "s1", "s", HOST, None),
        ("g", LEFT, 9, "s1", "s", HOST, BACK),
        ("g", RETURNED, 9, "s2", "s", HOST, None),
        ("g", FENCED, 10, "s2", "s", HOST, None),
        ("g", LEFT, 15, "s2", "s", HOST, BACK),
        ("g", RETURNED, 15, "s3", "s", HOST, None),
        ("g", LEFT, 18, "s3", "s", HOST, "session timed out"),
        ("g", LEFT, 43, "a", None, HOST, "member left"),
        ("g", CAME, 44, None, None, None, None),
    ]
    frame = rows_of(spark, happened)
    ended = sessions(frame, window(0), window(60)).persist()
    found = ended.orderBy("ended").collect()
    assert [(row.member_id, seconds(row.started), row.session_ms, row.cause) for row in found] == [
        ("old", None, None, None),
        ("s1", 5, 4_000, BACK),
        ("s2", 9, 6_000, BACK),
        ("s3", 15, 3_000, "session timed out"),
        ("a", 3, 40_000, "member left"),
    ]
    rows = churn(frame, ended, window(0), window(60), 30_000).orderBy("client_host", "w_start").collect()
    names = CHURN.column_names[5:-1]
    assert [(row.client_host, seconds(row.w_start), seconds(row.w_end)) for row in rows] == [
        (None, 0, 30), (None, 30, 60), (HOST, 0, 30), (HOST, 30, 60),
    ]  # fmt: skip
    shown = [{name: row[name] for name in names if row[name]} for row in rows]
    assert shown == [
        {"leaves": 1, "leaves_unexplained": 1, "members": 1, "sessions_unknown": 1},
        {"joins": 5, "unnamed": 5},
        # The static member is one of two members; its three sessions were short.
        {"joins": 2, "leaves": 1, "timed_out": 1, "restarts": 2, "fenced": 1, "members": 2, "sessions": 3,
         "session_min_ms": 3_000, "session_median_ms": 4_000, "session_max_ms": 6_000, "short_sessions": 3, "flapping": ["s"]},
        {"leaves": 1, "members": 1, "sessions": 1,
         "session_min_ms": 40_000, "session_median_ms": 40_000, "session_max_ms": 40_000},
    ]  # fmt: skip
    ended.unpersist()


def test_random_histories_agree_with_plain_python_however_the_runs_divide_the_time(spark: SparkSession) -> None:
    happened = random_history(random.Random(11))
    frame = rows_of(spark, happened).persist()
    spans, step = [(0, 130), (130, 131), (131, 400)], 50
    found: dict[Any, Any] = {}
    stays: list[tuple[Any, ...]] = []
    for begin, until in spans:
        ended = sessions(frame, window(begin), window(until)).persist()
        stays += [(row.group, row.member_id, seconds(row.ended), row.session_ms) for row in ended.collect()]
        for row in churn(frame, ended, window(begin), window(until), 1000 * step).collect():
            key = (row.group, row.client_host, seconds(row.w_start), seconds(row.w_end))
            assert key not in found
            found[key] = tuple(row)[5:-1]
        ended.unpersist()
    frame.unpersist()
    edges = sorted({*range(0, 401, step), *(edge for span in spans for edge in span)})
    wanted, wanted_stays = expected(happened, edges, 1000 * step)
    assert sorted(stays, key=repr) == sorted(wanted_stays, key=repr)
    assert found == wanted
    assert sum(bool(row[-1]) for row in found.values()) > 3


def random_history(randomness: random.Random) -> list[Happened]:
    """Members of two groups on two hosts, some static; those that are there at the begin have not joined."""
    happened: list[Happened] = []
    made = 0
    present: list[tuple[str, str, str | None, str | None]] = [
        (group, f"first{number}", None, HOST) for group in "gh" for number in range(2)
    ]
    for second in range(1, 400):
        if randomness.random() < 0.4:
            made += 1
            instance = randomness.choice((None, None, f"i{randomness.randrange(3)}"))
            member = (randomness.choice("gh"), f"m{made}", instance, randomness.choice((HOST, OTHER, None)))
            same = [one for one in present if instance and one[0] == member[0] and one[2] == instance]
            for one in same:
                present.remove(one)
                happened.append((one[0], LEFT, second, *one[1:], BACK))
            present.append(member)
            happened.append((member[0], RETURNED if same else CAME, second, *member[1:], None))
        elif present and randomness.random() < 0.7:
            one = present.pop(randomness.randrange(len(present)))
            cause = randomness.choice((None, "member left", "session timed out", "rebalance timed out"))
            happened.append((one[0], LEFT, second, *one[1:], cause))
        elif randomness.random() < 0.2:
            happened.append((randomness.choice("gh"), randomness.choice((CAME, LEFT)), second, None, None, None, None))
    return happened


def expected(happened: list[Happened], edges: list[int], short_ms: int) -> tuple[dict[Any, Any], list[tuple[Any, ...]]]:
    since: dict[tuple[str, str], float] = {}
    groups: dict[Any, list[Happened]] = defaultdict(list)
    stays = []
    lengths: dict[Any, list[tuple[str, int | None]]] = defaultdict(list)
    for one in happened:
        group, event, second, member, instance, host, _ = one
        start = max(edge for edge in edges if edge <= second)
        key = (group, host, start, min(edge for edge in edges if edge > second))
        groups[key].append(one)
        if member and event == LEFT:
            began = since.pop((group, member), None)
            length = None if began is None else round(1000 * (second - began))
            stays.append((group, member, second, length))
            lengths[key].append((instance or "c", length))
        elif member and event != FENCED:
            since[group, member] = second

    def count(rows: list[Happened], event: str, *causes: str | None) -> int:
        return sum(1 if row[3] else 5 for row in rows if row[1] == event and (not causes or row[6] in causes))

    found: dict[Any, Any] = {}
    for key, rows in groups.items():
        known = [length for _, length in lengths[key] if length is not None]
        short = Counter(who for who, length in lengths[key] if length is not None and length < short_ms)
        found[key] = (
            count(rows, CAME),
            count(rows, LEFT) - count(rows, LEFT, BACK),
            count(rows, LEFT, "session timed out", "rebalance timed out"),
            count(rows, LEFT, None),
            count(rows, RETURNED),
            0,
            len({row[4] or row[3] for row in rows if row[3]}),
            sum(5 for row in rows if not row[3]),
            len(known),
            len(lengths[key]) - len(known),
            min(known, default=None),
            pytest.approx(median(known)) if known else None,
            max(known, default=None),
            short.total(),
            sorted(who for who, times in short.items() if times >= 3),
        )
    return found, stays


def test_hosts_and_instances_come_from_the_stored_members(spark: SparkSession) -> None:
    frame = rows_of(spark, [("g", CAME, 1, name, None, None, None) for name in ("classic", "newer", "unknown")])
    member = ("classic", "i1", "own", HOST, 1, 1, None)
    named = ("newer", *[None] * 6)
    content = '{"instance_id":null,"client_id":"own","client_host":"/10.0.0.2","epoch":{}}'
    none = [None] * 7
    events = [
        ("g", "classic", "GroupMetadata", *none[:6], False, [member], 3, None, 0, 1, at(1)),
        ("g", "consumer", "ConsumerGroupMemberMetadata", *none[:6], False, [named], 0, content, 0, 2, at(1)),
        ("g", "consumer", "ConsumerGroupMemberMetadata", *none[:6], True, [named], None, None, 0, 3, at(1)),
    ]
    filled = with_clients(frame, events_of(spark, events))
    assert {row.member_id: (row.instance_id, row.client_id, row.client_host) for row in filled.collect()} == {
        "classic": ("i1", "c", HOST),
        "newer": (None, "c", OTHER),
        "unknown": (None, "c", None),
    }


def events_of(spark: SparkSession, rows: list[Any]) -> DataFrame:
    return spark.createDataFrame(rows, GROUP_EVENTS.ddl)


def test_the_rows_have_the_schemas_of_the_tables(spark: SparkSession) -> None:
    filled = with_clients(rows_of(spark, []), events_of(spark, []))
    ended = sessions(filled, 0, 1)
    for frame, table in ((ended, SESSIONS), (churn(filled, ended, 0, 1, 1), CHURN)):
        assert frame.schema.simpleString() == spark.createDataFrame([], table.ddl).schema.simpleString()
