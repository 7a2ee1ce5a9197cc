"""Commits per window: a small history by hand, random ones against plain Python."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from kgctl.pipelines.schemas.group_facts import COMMIT_RATES
from kgctl.pipelines.schemas.groups import COMMITS
from kgctl.pipelines.transforms.commit_rates import PLACE_DDL, commit_rates
from tests.kgctl.pipelines.transforms.oracle_lag import Commit, Key
from tests.kgctl.pipelines.transforms.test_lag import START, at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START_MS = round(START.timestamp() * 1000)
LOG_PARTITIONS = 3

Place = tuple[int, int, float]  # log partition, offset, second


def placed(commits: list[Commit], gaps: set[int] = frozenset()) -> list[Place]:  # type: ignore[assignment]
    """Each commit in the log partition of its group; a number in `gaps` leaves one offset out before that commit."""
    next_offset = [100] * LOG_PARTITIONS
    places = []
    for number, ((group, *_), second, _) in enumerate(commits):
        partition = len(group) % LOG_PARTITIONS
        next_offset[partition] += number in gaps
        places.append((partition, next_offset[partition], second))
        next_offset[partition] += 1
    return places


def frames(spark: SparkSession, commits: list[Commit], places: list[Place]) -> tuple[DataFrame, DataFrame]:
    rows = [
        (
            *key,
            offset,
            None,
            "",
            None if offset is None else at(second),
            None,
            3,
            offset is None,
            *place[:2],
            at(second),
        )
        for (key, second, offset), place in zip(commits, places, strict=True)
    ]
    where = [(*place[:2], at(place[2])) for place in places]
    return spark.createDataFrame(rows[::-1], COMMITS.ddl), spark.createDataFrame(where, PLACE_DDL)


def window(second: float) -> int:
    return START_MS + round(1000 * second)


def test_a_history_by_hand(spark: SparkSession) -> None:
    key = ("grüße", "t", 0)
    commits: list[Commit] = [
        *[(key, second, offset) for second, offset in ((1, 10), (5, 40), (8, 40), (12, 25), (19, 30))],
        (key, 25, None),
        (key, 26, 7),
    ]
    data, places = frames(spark, commits, placed(commits, gaps={3}))
    rows = commit_rates(data, places, window(4), window(27), 10_000).orderBy("w_start").collect()
    assert [tuple(row)[5:] for row in rows] == [
        # Each is compared with the one before the window.
        (2, 2 / 6, 40, 40, 30, 0, 0, 0.5, 4_000, 3_500.0, 0, 1.0),
        (2, 0.2, 25, 30, 5, 1, 15, 0.0, 7_000, 5_500.0, 0, 2 / 3),
        # After the deletion there is none to compare with.
        (1, 1 / 7, 7, 7, None, 0, 0, None, None, None, 1, 1.0),
    ]
    assert [(row.w_start, row.w_end) for row in rows] == [
        (at(a).replace(tzinfo=None), at(b).replace(tzinfo=None)) for a, b in ((4, 10), (10, 20), (20, 27))
    ]


def test_random_histories_agree_with_plain_python_however_the_runs_divide_the_time(spark: SparkSession) -> None:
    randomness = random.Random(7)
    keys = [(group, topic, part) for group in ("a", "\u0000b", "") for topic in ("t", "ü") for part in range(2)]
    commits: list[Commit] = [
        (randomness.choice(keys), randomness.randrange(100), randomness.choice([None, *range(0, 60, 5)]))
        for _ in range(500)
    ]
    commits.sort(key=lambda commit: commit[1])
    places = placed(commits, gaps=set(randomness.sample(range(500), 60)))
    data, where = frames(spark, commits, places)
    found: dict[Any, Any] = {}
    # As three runs, of which none ends at a multiple of the step.
    for begin, until in ((0, 33), (33, 34), (34, 101)):
        for row in commit_rates(data, where, window(begin), window(until), 10_000).collect():
            start, end = (round((one - START.replace(tzinfo=None)).total_seconds()) for one in (row.w_start, row.w_end))
            found[(row.group, row.topic, row.part, start, end)] = tuple(row)[5:]
    assert found == expected(commits, places, [(0, 10), (10, 20), (20, 30), (30, 33), (33, 34), (34, 40)]
                             + [(second, second + 10) for second in range(40, 100, 10)])  # fmt: skip
    assert sum(row[0] for row in found.values()) == sum(offset is not None for *_, offset in commits)


def expected(commits: list[Commit], places: list[Place], windows: list[tuple[int, int]]) -> dict[Any, Any]:
    history: dict[Key, list[tuple[int, int | None]]] = defaultdict(list)
    for key, second, offset in commits:
        history[key].append((second, offset))
    found: dict[Any, Any] = {}
    for key, moves in history.items():
        for start, end in windows:
            inside = [place for place, (second, _) in enumerate(moves) if start <= second < end]
            if not inside:
                continue
            offsets = [moves[place][1] for place in inside if moves[place][1] is not None]
            pairs = [(moves[place - 1], moves[place]) for place in inside if place]
            pairs = [pair for pair in pairs if pair[0][1] is not None and pair[1][1] is not None]
            moved = [after[1] - before[1] for before, after in pairs]  # type: ignore[operator]
            gaps = [1000 * (after[0] - before[0]) for before, after in pairs]
            found[(*key, start, end)] = (
                len(offsets),
                pytest.approx(len(offsets) / (end - start)),
                offsets[0] if offsets else None,
                offsets[-1] if offsets else None,
                sum(max(0, one) for one in moved) if moved else None,
                sum(one < 0 for one in moved),
                -sum(min(0, one) for one in moved),
                moved.count(0) / len(moved) if moved else None,
                max(gaps, default=None),
                median(gaps) if gaps else None,
                len(inside) - len(offsets),
                complete(places, len(key[0]) % LOG_PARTITIONS, start, end),
            )
    return found


def complete(places: list[Place], partition: int, start: int, end: int) -> object:
    offsets = [(offset, second) for number, offset, second in places if number == partition]
    steps = [after[0] - before[0] for before, after in pairwise(offsets) if start <= after[1] < end]
    return pytest.approx(len(steps) / sum(steps)) if steps else None


def test_the_rows_have_the_schema_of_the_table(spark: SparkSession) -> None:
    frame = commit_rates(*frames(spark, [], []), 0, 1, 1)
    assert frame.schema.simpleString() == spark.createDataFrame([], COMMIT_RATES.ddl).schema.simpleString()
