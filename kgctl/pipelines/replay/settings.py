"""What a replay does, and its id: the same settings continue the same replay."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.replay.records import RecordFilter

PREFIX = "kgctl-replay-"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a position is committed: a group, and a partition that the target has."""

    group: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """`id` is the transactional id and the group of the positions.

    `targets` maps topics of the archive to those that this run writes. `sources` has all topics that the replay has written in
    any run, each with its topic of the archive: a target has one source, and a source any number of targets. `counts` has the
    partitions that targets had in the first run: those of a replay by key have places that depend on them.

    `shift_ms` is added to each timestamp; with `is_now`, records get the time at which they are sent. Without
    `in_transactions`, records are written at least once.
    """

    id: str
    targets: Mapping[str, str]
    sources: Mapping[str, str]
    chosen: RecordFilter = field(default_factory=RecordFilter)
    by_key: bool = False
    shift_ms: int = 0
    is_now: bool = False
    in_transactions: bool = True
    counts: Mapping[str, int] = field(default_factory=dict)

    def part_of(self, source: TopicPartition) -> TopicPartition:
        """What this run does with a partition of the archive: the target, and the number of the partition in the archive.

        Positions and offsets are kept under this name.
        """
        return TopicPartition(self.targets[source.topic], source.partition)

    def place_of(self, part: TopicPartition, count: int) -> Place:
        """`count` is how many partitions the target has now. An archive with more uses further groups: offsets name existing
        partitions."""
        if self.by_key:
            # A topic that was created again may have fewer than in the first run.
            count = min(count, self.counts.get(part.topic, count))
        further, number = divmod(part.partition, count)
        return Place(self.group(further), TopicPartition(part.topic, number))

    def group(self, further: int) -> str:
        return f"{self.id}-{further}" if further else self.id


def id_of(texts: Mapping[str, object]) -> str:
    """An id that depends on these values alone, which JSON can hold. Topics are none of them: more may follow later."""
    return PREFIX + hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:12]


def settings_of(
    name: str, kept: Mapping[str, Any], targets: Mapping[str, str], *, in_transactions: bool = True
) -> ReplaySettings:
    """The settings of a replay from what its folder keeps, see `log.keep_settings`. Raises re.error."""
    pattern = kept["key_match"]
    return ReplaySettings(
        name,
        targets,
        kept["sources"],
        RecordFilter(
            frozenset(map(_bytes, kept["keys"])),
            None if pattern is None else re.compile(_bytes(pattern)),
            kept["since_ms"],
            kept["until_ms"],
        ),
        kept["by_key"],
        kept["shift_ms"],
        kept["now"],
        in_transactions,
        kept.get("counts", {}),
    )


def _bytes(argument: str) -> bytes:
    """As the shell gave them: Python keeps bytes that are not UTF-8 as surrogates."""
    return argument.encode("utf-8", "surrogateescape")
