"""How far a replay is, as it has committed it on the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kgctl.client.admin.offsets import stable_of
from kgctl.client.net.errors import KgctlError, from_row
from kgctl.model.groups import Committed
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.replay.settings import Place, ReplaySettings, place_of

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin


def read_positions(
    admin: Admin, archive: Archive, settings: ReplaySettings, counts: Mapping[str, int], *, is_stable: bool = False
) -> dict[TopicPartition, int]:
    """Where each partition of the archive continues, as the replay has committed it. Raises KgctlError.

    With `is_stable`, also if a transaction may still change it.
    """
    places: dict[Place, TopicPartition] = {}
    for source in archive.spans:
        count = counts.get(settings.targets.get(source.topic, ""))
        if count:
            places[place_of(settings, source, count)] = source
    wanted: dict[str, list[TopicPartition]] = {}
    for place in places:
        wanted.setdefault(place.group, []).append(place.partition)
    found = admin.run(stable_of(admin.cluster, wanted)) if is_stable else admin.committed(list(wanted))
    positions = {}
    for place, source in places.items():
        commits = found[place.group]
        if isinstance(commits, KgctlError):
            raise commits
        one: Committed | None = commits.get(place.partition)
        if one is not None and one.error is not None and is_stable:
            raise from_row(one.error)
        if one is not None and one.offset is not None:
            positions[source] = one.offset
    return positions
