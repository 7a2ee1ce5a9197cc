"""The replays of an archive, as their folders say: what they wrote, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.replay.log import SETTINGS, ReplayLog, kept_settings, read_log
from kgctl.pipelines.replay.offset_map import OffsetMap
from kgctl.pipelines.replay.positions import read_positions
from kgctl.pipelines.replay.settings import PREFIX, ReplaySettings, settings_of

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin


@dataclass(frozen=True, slots=True)
class KeptReplay:
    settings: ReplaySettings
    log: ReplayLog

    @property
    def id(self) -> str:
        return self.settings.id

    @property
    def short_id(self) -> str:
        return self.id.removeprefix(PREFIX)

    def settle(self, admin: Admin, archive: Archive, counts: Mapping[str, int]) -> None:
        """Forget a transaction that was not committed. Raises PositionsLost, KgctlError."""
        self.log.settle(read_positions(admin, archive, self.settings, counts))

    def maps(self, source: str) -> dict[int, OffsetMap]:
        """Of the partitions of a topic of the archive."""
        partitions = {key for line in self.log.lines for key in line.moves if key.topic == source}
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
            found.append(KeptReplay(settings_of(path.parent.name, content), read_log(path.parent)))
    return found
