"""The replays of an archive, as their folders say: what they wrote, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.replay.log import SETTINGS, ReplayLog, kept_settings, read_log
from kgctl.pipelines.replay.offset_map import OffsetMap
from kgctl.pipelines.replay.positions import read_positions
from kgctl.pipelines.replay.settings import PREFIX, ReplaySettings, settings_of

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin


@dataclass(frozen=True, slots=True)
class KeptReplay:
    """`settle` comes first: what the cluster does not confirm is not used."""

    settings: ReplaySettings
    log: ReplayLog
    _confirmed: set[TopicPartition] = field(default_factory=set)

    @property
    def id(self) -> str:
        return self.settings.id

    @property
    def short_id(self) -> str:
        return self.id.removeprefix(PREFIX)

    def settle(self, admin: Admin, archive: Archive, counts: Mapping[str, int]) -> None:
        """Forget a transaction that was not committed. Raises KgctlError."""
        positions = read_positions(admin, archive, self.settings, counts)
        self.log.settle(positions, [])
        self._confirmed.update(positions)

    def lacks_positions(self, target: str) -> bool:
        """Whether the cluster no longer has them: the topic may be another one by now."""
        return target not in {part.topic for part in self._confirmed}

    def ends(self, target: str) -> dict[int, int] | None:
        """Of a replay by key, see `ReplayLog.target_ends`."""
        return None if self.lacks_positions(target) else self.log.target_ends(target)

    def maps(self, target: str) -> dict[int, OffsetMap]:
        """By the number of the partition in the archive."""
        partitions = {part for line in self.log.lines for part in line.moves if part.topic == target} & self._confirmed
        found = {key.partition: self.log.offset_map(key) for key in partitions}
        return {number: one for number, one in found.items() if one is not None}


def kept_replays(state: Path, source_cluster: str, target_cluster: str) -> list[KeptReplay]:
    """The replays from one cluster to another, in the order of their ids. Raises Damaged."""
    found = []
    for path in sorted(state.glob(f"{PREFIX}*/{SETTINGS}")):
        content = kept_settings(path.parent)
        if content is not None and (content["source_cluster_id"], content["cluster_id"]) == (
            source_cluster,
            target_cluster,
        ):
            found.append(KeptReplay(settings_of(path.parent.name, content, {}), read_log(path.parent)))
    return found
