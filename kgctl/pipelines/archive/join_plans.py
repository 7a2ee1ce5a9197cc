"""Which commits of an archive become one, and which of their small files. Pure.

Only neighbors are joined: then a commit still says that it holds all offsets from here to there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath

from kgctl.pipelines.archive.layout import Addition, ArchivedFile, Hole, ReadRange, TopicFacts, partition_of
from kgctl.pipelines.archive.manifest import Commit
from kgctl.pipelines.tables.merge_plans import TARGET, TIER_FILES, TIER_LIMIT, tier

# A joined commit holds at most this much: `verify` has the offsets of a commit in memory, and a join needs disk space.
MOST_RECORDS, MOST_BYTES = 16_000_000, 2 << 30
# The tier of a commit that is large enough.
_STAYS = 1_000


@dataclass(frozen=True, slots=True)
class Join:
    """Neighboring commits that become one. The files of each of `merges` become one; others stay as they are."""

    commits: tuple[Commit, ...]
    merges: tuple[tuple[ArchivedFile, ...], ...]

    @property
    def merged(self) -> tuple[ArchivedFile, ...]:
        return tuple(file for some in self.merges for file in some)

    def addition(self, merged: Sequence[ArchivedFile]) -> Addition:
        """What the joined commit adds, if `merged` are the new files."""
        gone = {file.path for file in self.merged}
        additions = [commit.addition for commit in self.commits]
        stay = [file for one in additions for file in one.files if file.path not in gone]
        topics: dict[str, TopicFacts] = {topic.name: topic for one in additions for topic in one.topics}
        steps = [step for one in additions for step in one.steps]
        return Addition(
            cluster_id=additions[0].cluster_id,
            isolation_level=additions[0].isolation_level,
            topics=tuple(topics.values()),
            ranges=tuple(_ranges(steps)),
            holes=tuple(one for one in steps if isinstance(one, Hole)),
            files=(*stay, *merged),
        )


def all_small(commits: Sequence[Commit]) -> list[Join]:
    """What leaves as few commits and files as possible: for `pipeline maintain`."""
    return [_join(some) for some in _groups(commits) if len(some) > 1]


def many_alike(commits: Sequence[Commit]) -> Join | None:
    """What keeps their number low at little cost: for a run between its commits.

    A join needs TIER_FILES commits with files of similar size; those with smaller ones between them are joined too. So files
    grow with each join, and a record is rewritten a few times.
    """
    tiers = [_tier(commit) for commit in commits]
    for wanted in sorted(set(tiers) - {_STAYS}):
        run: list[int] = []
        for at in range(len(commits) + 1):
            if at < len(commits) and tiers[at] <= wanted:
                run.append(at)
                continue
            if sum(1 for one in run if tiers[one] == wanted) >= TIER_FILES:
                ready = _ready([commits[one] for one in run], wanted)
                if ready:
                    return _join(max(ready, key=len))
            run = []
    return None


def _ready(run: Sequence[Commit], wanted: int) -> list[list[Commit]]:
    """The groups of a run that are worth a join: those that the next commit did not fit into, and those with enough commits.

    A full group is joined once and stays full. The last group would be joined again, and rewritten, with each new commit.
    """
    groups = _groups(run)
    last = groups.pop()
    if sum(1 for commit in last if _tier(commit) == wanted) >= TIER_FILES:
        groups.append(last)
    return [group for group in groups if len(group) > 1]


def _tier(commit: Commit) -> int:
    """By the mean size of the commit's files."""
    addition = commit.addition
    mean = sum(file.size for file in addition.files) // max(1, len(addition.files))
    return tier(mean) if mean < TIER_LIMIT and 2 * addition.records <= MOST_RECORDS else _STAYS


def _groups(commits: Sequence[Commit]) -> list[list[Commit]]:
    """Neighbors that may be one commit together."""
    groups: list[list[Commit]] = []
    records = size = 0
    for commit in commits:
        addition = commit.addition
        own = sum(file.size for file in addition.files)
        last = groups[-1][-1] if groups else None
        if (
            last is None
            or records + addition.records > MOST_RECORDS
            or size + own > MOST_BYTES
            or commit.first != last.number + 1
            or (addition.cluster_id, addition.isolation_level)
            != (last.addition.cluster_id, last.addition.isolation_level)
        ):
            groups.append([])
            records = size = 0
        groups[-1].append(commit)
        records, size = records + addition.records, size + own
    return groups


def _join(commits: Sequence[Commit]) -> Join:
    files = sorted((file for commit in commits for file in commit.addition.files), key=_place)
    merges = []
    for _, of_place in groupby(files, key=lambda file: _place(file)[:2]):
        group: list[ArchivedFile] = []
        for file in of_place:
            if file.size >= TARGET // 2:
                continue
            if sum(one.size for one in group) + file.size > TARGET:
                merges.append(tuple(group))
                group = []
            group.append(file)
        merges.append(tuple(group))
    return Join(tuple(commits), tuple(one for one in merges if len(one) > 1))


def _place(file: ArchivedFile) -> tuple[str, int, int]:
    """Topic and day, and partition; then the order in which records are written."""
    return str(PurePath(file.path).parent), file.partition, file.first_offset


def _ranges(steps: Sequence[ReadRange | Hole]) -> list[ReadRange]:
    """Ranges that continue each other become one, with the newest leader epoch. A hole ends a range."""
    found: list[ReadRange] = []
    for _, of_partition in groupby(
        sorted(steps, key=lambda one: (partition_of(one), one.start, one.end)), key=partition_of
    ):
        before: ReadRange | Hole | None = None
        for one in of_partition:
            if isinstance(one, ReadRange) and isinstance(before, ReadRange) and one.start == before.end:
                epoch = one.leader_epoch if one.leader_epoch >= 0 else before.leader_epoch
                one = ReadRange(one.topic, one.partition, before.start, one.end, before.records + one.records, epoch)
                found[-1] = one
            elif isinstance(one, ReadRange):
                found.append(one)
            before = one
    return found
