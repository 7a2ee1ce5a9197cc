"""How far a replay is, as it has committed it on the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kgctl.client.admin.offsets import stable_of
from kgctl.client.admin.pending_offsets import UNSTABLE
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError, Precondition, from_row
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.groups import Committed
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.replay.settings import Place, ReplaySettings

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin


def label(archive: Archive, source: TopicPartition) -> str:
    """What a position is of: the metadata of the committed offset."""
    return f"{source} {archive.topics[source.topic].id}"


def _closed(
    cluster: Cluster, wanted: Mapping[str, Sequence[TopicPartition]]
) -> Steps[dict[str, dict[TopicPartition, Committed] | KgctlError]]:
    """The committed offsets once no transaction may change them, or after some seconds: the end of a transaction may take
    effect a little after its acknowledgement."""
    for wait in (*cluster.retry_waits, None):
        found = yield from stable_of(cluster, wanted)
        commits = [one for some in found.values() if not isinstance(some, KgctlError) for one in some.values()]
        if wait is None or not any(one.error is not None and one.error.name == UNSTABLE for one in commits):
            break
        yield Pause(wait, "a transaction is open")
    return found


def read_positions(
    admin: Admin, archive: Archive, settings: ReplaySettings, counts: Mapping[str, int], *, is_stable: bool = True
) -> dict[TopicPartition, int]:
    """The next offset of each part (see `ReplaySettings.part_of`) that the replay has written in any run.

    `counts` is how many partitions the targets have that exist. With `is_stable`, a transaction that may still change a
    position, and stays open, is a Precondition. Raises KgctlError.
    """
    places: dict[Place, tuple[TopicPartition, TopicPartition]] = {}
    for target, topic in settings.sources.items():
        for source in archive.spans:
            if source.topic == topic and counts.get(target):
                part = TopicPartition(target, source.partition)
                places[settings.place_of(part, counts[target])] = part, source
    wanted: dict[str, list[TopicPartition]] = {}
    for place in places:
        wanted.setdefault(place.group, []).append(place.partition)
    found = admin.run(_closed(admin.cluster, wanted)) if is_stable else admin.committed(list(wanted))
    positions = {}
    for place, (part, source) in places.items():
        commits = found[place.group]
        if isinstance(commits, KgctlError):
            raise commits
        one: Committed | None = commits.get(place.partition)
        if one is not None and one.error is not None:
            if one.error.name == UNSTABLE:
                raise Precondition(
                    f"the last transaction of replay {settings.id} has not ended: wait if the replay is still running, or run it "
                    "again to finish it"
                )
            raise from_row(one.error)
        if one is None or one.offset is None:
            continue
        if one.metadata != label(archive, source):
            raise Precondition(
                f"group {place.group!r} has the position of another topic for {place.partition}: {one.metadata or 'unknown'}, not "
                f"{label(archive, source)}; give another --id"
            )
        positions[part] = one.offset
    return positions


def first_counts(admin: Admin, archive: Archive, settings: ReplaySettings, counts: Mapping[str, int]) -> dict[str, int]:
    """How many partitions targets had in the first run, as its positions say if its folder is gone. Raises KgctlError."""
    found: dict[str, int] = dict(settings.counts)
    for target, topic in settings.sources.items():
        numbers = {label(archive, key): key.partition for key in archive.spans if key.topic == topic}
        further = {settings.group(n): n for n in range(1, max(numbers.values(), default=0) + 1)}
        # Into the same partitions, each has its position under its own number.
        if target in found or target not in counts or not settings.by_key:
            continue
        for group, commits in admin.committed(list(further)).items():
            if isinstance(commits, KgctlError):
                raise commits
            for key, one in commits.items():
                if key.topic == target and one.metadata in numbers:
                    found[target] = (numbers[one.metadata] - key.partition) // further[group]
    return found
