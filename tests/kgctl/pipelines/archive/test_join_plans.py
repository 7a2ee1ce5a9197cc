"""Which commits are joined: few stay, and each record is rewritten a few times only."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from kgctl.pipelines.archive.join_plans import MOST_RECORDS, all_small, many_alike
from kgctl.pipelines.archive.layout import Addition, ArchivedFile, Hole, ReadRange
from kgctl.pipelines.archive.manifest import Commit
from kgctl.pipelines.tables.merge_plans import MIB, TARGET, TIER_FILES

ORIGIN = ("cluster", "read_committed")


def commit(number: int, sizes: Sequence[int], records: int = 10) -> Commit:
    """A file per partition."""
    files = tuple(
        ArchivedFile(
            f"records/topic=t/date=2026-01-31/{number}-{partition}.parquet",
            *("t", partition, number * records, (number + 1) * records - 1, records, size, "", 0, 0),
        )
        for partition, size in enumerate(sizes)
    )
    ranges = tuple(
        ReadRange("t", partition, number * records, (number + 1) * records, records, number)
        for partition in range(len(sizes))
    )
    return Commit(number, number, Addition(*ORIGIN, ranges=ranges, files=files), number)


def joined(commits: Sequence[Commit], some: Sequence[Commit], merges: Sequence[Sequence[ArchivedFile]]) -> list[Commit]:
    """The commits after a join, as if files kept their size."""
    plan = next(one for one in [many_alike(commits)] if one is not None)
    assert list(plan.commits) == list(some)
    new = [
        replace(files[0], path=f"records/merged-{some[-1].number}-{at}", records=sum(file.records for file in files),
                last_offset=files[-1].last_offset, size=sum(file.size for file in files))
        for at, files in enumerate(merges)
    ]  # fmt: skip
    one = Commit(some[-1].number, 0, plan.addition(new), some[0].first)
    return [each for each in commits if each not in some] + [one]


@pytest.mark.parametrize("sizes", [(5_000, 3_000_000), (100_000,) * 5, ()])
def test_a_following_run_keeps_few_commits_and_rewrites_little(sizes: tuple[int, ...]) -> None:
    randomness = random.Random(3)
    commits: list[Commit] = []
    rewritten = written = most = 0
    for number in range(1_500):
        some = [round(size * randomness.uniform(0.2, 1.8)) for size in sizes]
        written += sum(some)
        commits.append(commit(number, some))
        while (plan := many_alike(commits)) is not None:
            rewritten += sum(file.size for file in plan.merged)
            commits = sorted(joined(commits, plan.commits, plan.merges), key=lambda one: one.number)
        most = max(most, len(commits))
    assert commits[0].first == 0
    assert all(after.first == before.number + 1 for before, after in pairwise(commits))
    for partition in range(len(sizes)):
        ranges = [one for each in commits for one in each.addition.ranges if one.partition == partition]
        assert sum(one.records for one in ranges) == 15_000
        assert ranges[-1].leader_epoch == 1_499
    # Of 2 GiB at most; the rest are in tiers of 15.
    assert most < 16 * 4 + written // (1 << 30)
    assert rewritten <= 4 * written


def test_commits_that_are_large_enough_stay() -> None:
    assert many_alike([commit(n, [TARGET]) for n in range(40)]) is None
    assert many_alike([commit(n, [MIB], MOST_RECORDS) for n in range(40)]) is None
    assert all_small([commit(n, [MIB], MOST_RECORDS) for n in range(3)]) == []


def test_commits_that_do_not_fit_together_stay_but_those_after_them_are_joined() -> None:
    # 16 commits of one tier, any two of which are larger than a joined commit may be.
    large = [commit(n, [20 * MIB] * 60) for n in range(TIER_FILES)]
    assert many_alike(large) is None
    wall = [commit(TIER_FILES, [TARGET])]
    small = [commit(TIER_FILES + 1 + n, [20 * MIB]) for n in range(TIER_FILES)]
    plan = many_alike([*large, *wall, *small])
    assert plan is not None
    assert list(plan.commits) == small


def test_a_large_commit_is_not_rewritten_with_each_new_one() -> None:
    large = [commit(n, [20 * MIB] * 60) for n in range(TIER_FILES)]
    assert many_alike([*large, commit(TIER_FILES, [20 * MIB])]) is None


@pytest.mark.parametrize("seed", range(20))
def test_joins_end_whatever_the_sizes_are(seed: int) -> None:
    randomness = random.Random(seed)
    commits = [
        commit(n, [round(MIB * 2 ** randomness.uniform(seed % 6, seed % 6 + 1.2))] * randomness.choice([1, 60, 90]))
        for n in range(80)
    ]
    for _ in range(len(commits)):
        plan = many_alike(commits)
        if plan is None:
            break
        assert len(plan.commits) > 1
        commits = sorted(joined(commits, plan.commits, plan.merges), key=lambda one: one.number)
    assert many_alike(commits) is None


def test_as_few_commits_as_their_limit_allows() -> None:
    joins = all_small([commit(n, [MIB], MOST_RECORDS // 3) for n in range(7)])
    assert [[one.number for one in join.commits] for join in joins] == [[0, 1, 2], [3, 4, 5]]
    assert [len(join.merges) for join in joins] == [1, 1]
    # One file of two is large enough.
    (join,) = all_small([commit(0, [TARGET, MIB]), commit(1, [MIB, MIB])])
    assert [[file.size for file in files] for files in join.merges] == [[MIB, MIB]]
    assert [file.size for file in join.addition([]).files] == [TARGET, MIB]


def test_only_neighbors_of_one_cluster_are_joined() -> None:
    commits = [commit(n, [1]) for n in (0, 1, 3, 4)]
    assert [[one.number for one in join.commits] for join in all_small(commits)] == [[0, 1], [3, 4]]
    other = replace(commits[1], addition=replace(commits[1].addition, isolation_level="read_uncommitted"))
    assert [[one.number for one in join.commits] for join in all_small([commits[0], other])] == []


def test_a_hole_stays_between_its_ranges() -> None:
    def of(number: int, *steps: ReadRange | Hole) -> Commit:
        ranges = tuple(one for one in steps if isinstance(one, ReadRange))
        holes = tuple(one for one in steps if isinstance(one, Hole))
        return Commit(number, 0, Addition(*ORIGIN, ranges=ranges, holes=holes), number)

    first, hole, behind = ReadRange("t", 0, 0, 5, 5, 1), Hole("t", 0, 5, 7, 1), ReadRange("t", 0, 7, 9, 1, -1)
    (join,) = all_small([of(0, first), of(1, hole, behind), of(2, ReadRange("t", 0, 9, 12, 3, 4))])
    found = join.addition([])
    assert found.ranges == (first, ReadRange("t", 0, 7, 12, 4, 4))
    assert found.holes == (hole,)
