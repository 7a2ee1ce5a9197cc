"""Asks the cluster for the values that a condition needs, and for no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from broker.light_dataclasses import replace
from broker.light_named_tuples import NamedTuple
from kgctl.commands.groups.sampling import take_samples, with_facts
from kgctl.conditions.evaluation import Value
from kgctl.conditions.observation import (
    COUNTS_LAG,
    NEEDS_STORED_FACTS,
    NEEDS_TIMES,
    NEEDS_TOPICS,
    Known,
    is_absent,
    observe,
    uncommitted,
)
from kgctl.conditions.variables import Reference
from kgctl.model.groups import GroupDescription
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.lag import Sample
from kgctl.watch.overview import Behind, behind_of

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.commands.shared.settings import Settings

# A verdict looks at snapshots of this many seconds, at most this many of them.
VERDICT_S, MOST_SAMPLES = 60.0, 60


class Observed(NamedTuple):
    """A group and the values of the variables."""

    group: GroupDescription
    values: Mapping[Reference, Value]


class Observer:
    """Observes groups once or again and again; a verdict uses earlier snapshots, too."""

    def __init__(self, admin: Admin, chosen: Settings, wanted: Iterable[Reference]) -> None:
        self._admin, self._chosen = admin, chosen
        self._wanted = list(dict.fromkeys(wanted))
        self._names = {one.name for one in self._wanted}
        self._samples: list[Sample] = []

    def observe(self, groups: Sequence[str]) -> dict[str, Observed]:
        """Raises a KgctlError if the cluster does not answer."""
        (sample,) = take_samples(self._admin, groups, None)
        if self._names & NEEDS_STORED_FACTS:
            sample = self._with_stored_facts(sample)
        present = [group for group in sample.groups.values() if group.error is None and not is_absent(group)]
        starts: Mapping[TopicPartition, int] = {}
        behind: dict[str, Behind] = {}
        if self._names & NEEDS_TIMES:
            self._remember(sample)
            facts = self._admin.lag_facts(present)
            starts, behind = facts.log_starts, behind_of(self._samples, facts)
        elif self._names & COUNTS_LAG:
            starts = self._log_starts(present)
        sizes = self._sizes(present) if self._names & NEEDS_TOPICS else {}
        known = Known(sample, starts, behind, sizes)
        return {name: Observed(group, observe(name, self._wanted, known)) for name, group in sample.groups.items()}

    def _remember(self, sample: Sample) -> None:
        recent = [one for one in self._samples if sample.at_s - one.at_s <= VERDICT_S]
        self._samples = [*recent[-MOST_SAMPLES:], sample]

    def _with_stored_facts(self, sample: Sample) -> Sample:
        present = {name: group for name, group in sample.groups.items() if group.error is None and group.state}
        if self._names & NEEDS_STORED_FACTS == {"generation"} and all(
            group.generation is not None or group.group_epoch is not None for group in present.values()
        ):
            return sample
        found = with_facts(self._admin, self._chosen, replace(sample, groups=present))
        return replace(sample, groups={**sample.groups, **found.groups})

    def _log_starts(self, groups: Sequence[GroupDescription]) -> dict[TopicPartition, int]:
        from kgctl.client.admin.offsets import EARLIEST

        partitions = {key for group in groups for key in uncommitted(group)}
        found = self._admin.list_offsets(dict.fromkeys(sorted(partitions), EARLIEST)) if partitions else {}
        return {key: answer.offset for key, answer in found.items() if not isinstance(answer, Exception)}

    def _sizes(self, groups: Sequence[GroupDescription]) -> dict[str, int]:
        topics = sorted({topic for group in groups for topic in group.subscribed or ()})
        rows = self._admin.list_topics(topics) if topics else []
        return {row.topic: row.partitions for row in rows if row.error is None}
