"""What members and partitions hold against the mean: random groups against plain Python."""

from __future__ import annotations

import random
from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest

from kgctl.pipelines.schemas.group_facts import MEMBER_SKEW, PARTITION_SKEW
from kgctl.pipelines.schemas.groups import LAG
from kgctl.pipelines.transforms import skew
from tests.kgctl.pipelines.transforms.oracle_lag import Key
from tests.kgctl.pipelines.transforms.test_commit_rates import window
from tests.kgctl.pipelines.transforms.test_lag import at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = 100
Held = tuple[int, float | None, float | None]
Assigned = dict[tuple[str, str], list[tuple[str, int]] | None]


def assigned_of(spark: SparkSession, assigned: Assigned) -> DataFrame:
    rows = [
        (group, "consumer", member, None, "c", "/h", owned is not None, topic, part)
        for (group, member), owned in assigned.items()
        for topic, part in owned or [(None, None)]
    ]
    return spark.createDataFrame(rows, skew.ASSIGNED_DDL)


def lag_of(spark: SparkSession, lag: dict[Key, Held]) -> DataFrame:
    rows = [
        (*key, at(second), 0, 0, held[0] + second, 0, *held[1:], None)
        for key, held in lag.items()
        for second in (-9, 0)
    ]
    return spark.createDataFrame(rows, LAG.ddl)


def test_random_groups_agree_with_plain_python(spark: SparkSession) -> None:
    randomness = random.Random(3)
    assigned: Assigned = {
        ("unreadable", "m0"): None,
        ("unreadable", "m1"): [("t", 0)],
        ("idle", "m0"): [],
        ("idle", "m1"): [],
    }
    lag: dict[Key, Held] = {("empty", "t", 0): (70, None, None), ("idle", "t", 1): (0, 0.0, 0.0)}
    for number in range(12):
        members: list[list[tuple[str, int]]] = [[] for _ in range(randomness.randrange(1, 5))]
        for part in range(randomness.randrange(9)):
            key = (f"g{number}", "tü"[part % 2], part)
            randomness.choice([*members, []]).append(key[1:])
            if number == 3:
                randomness.choice(members).append(key[1:])  # a share group
            elif randomness.random() < 0.8:
                lag[key] = (randomness.choice((0, 5, 1000)), *(randomness.choice((None, 0.0, 2.5)) for _ in range(2)))
        assigned |= {(f"g{number}", f"m{place}"): sorted(set(owned)) for place, owned in enumerate(members)}
    frame, newest = assigned_of(spark, assigned), skew.newest(lag_of(spark, lag)).persist()
    members_found = {
        (row.group, row.member_id): (row.group_members, *tuple(row)[8:-1])
        for row in skew.member_skew(frame, newest, window(NOW)).collect()
    }
    assert members_found == expected_members(assigned, lag)
    parts_found = {
        (row.group, row.topic, row.part): tuple(row)[4:-1]
        for row in skew.partition_skew(frame, newest, window(NOW)).collect()
    }
    members_of = {row.group: row.members for row in skew.partition_skew(frame, newest, NOW, {"idle"}).collect()}
    assert (members_of["idle"], members_of["empty"]) == ([], None)
    newest.unpersist()
    assert parts_found == expected_partitions(assigned, lag)
    assert sum(row[0] == [] for row in parts_found.values()) > 3


def ratio(value: float | None, values: list[float | None]) -> Any:
    known = [one for one in values if one is not None]
    return None if value is None or not sum(known) else pytest.approx(value / fmean(known))


def total(values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known or not values else None


def expected_members(assigned: Assigned, lag: dict[Key, Held]) -> dict[Any, Any]:
    held: dict[str, dict[str, list[Any]]] = defaultdict(dict)
    for (group, member), owned in assigned.items():
        known = [lag.get((group, *place), (None, None, None)) for place in owned or []]
        sums = [total([row[place] for row in known]) if owned is not None else None for place in range(3)]
        held[group][member] = [None if owned is None else len(owned), *sums, sum(row[0] is None for row in known)]
    return {
        (group, member): (
            len(members),
            row[0],
            row[4],
            *row[1:4],
            *(ratio(row[place], [one[place] for one in members.values()]) for place in range(4)),
        )
        for group, members in held.items()
        for member, row in members.items()
    }


def expected_partitions(assigned: Assigned, lag: dict[Key, Held]) -> dict[Any, Any]:
    owners: dict[Key, list[str]] = {key: [] for key in lag}
    for (group, member), owned in assigned.items():
        for place in owned or []:
            owners.setdefault((group, *place), []).append(member)
    found = {}
    for key, members in owners.items():
        of_group = [lag.get(one, (None, None, None)) for one in owners if one[0] == key[0]]
        own = lag.get(key, (None, None, None))
        lags = [row[0] for row in of_group if row[0] is not None]
        share = pytest.approx(own[0] / sum(lags)) if own[0] is not None and sum(lags) else None
        ratios = [ratio(own[place], [row[place] for row in of_group]) for place in range(3)]
        found[key] = (sorted(members), *own, share, *ratios)
    return found


def test_the_rows_have_the_schemas_of_the_tables(spark: SparkSession) -> None:
    frame, lag = assigned_of(spark, {}), lag_of(spark, {})
    for made, table in (
        (skew.member_skew(frame, lag, 0), MEMBER_SKEW),
        (skew.partition_skew(frame, lag, 0), PARTITION_SKEW),
    ):
        assert made.schema.simpleString() == spark.createDataFrame([], table.ddl).schema.simpleString()
