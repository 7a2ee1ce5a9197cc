"""Where a stream begins that does not read its topic from the start: asked once, and kept beside the checkpoint.

A source in Python cannot keep its first offsets. If a run is killed in its first batch, Spark asks for them again, and what
is "latest" by then lies behind the records of that batch.
"""

from __future__ import annotations

import json
from pathlib import Path

from kgctl.client.admin.offsets import LATEST
from kgctl.pipelines.jobs.checkpoint_files import OTHER_OUT, DamagedCheckpoint
from kgctl.pipelines.jobs.checkpoints import is_claimed
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.log_ends import LogEnds
from kgctl.pipelines.source.options import SPARK_CLIENT_ID, AtTimestamp, Selection
from kgctl.pipelines.source.ranges import to_json
from kgctl.pipelines.tables.durable import make_folder, write_durably

FIRST = "kgctl-first-offsets.json"


def first_offsets(checkpoint: Path, topic: str, settings: RunSettings) -> str | None:
    """The value of the option startingOffsets. None: `settings.since` always means the same, or Spark's connector keeps it.

    Raises KgctlError, DamagedCheckpoint.
    """
    if settings.source != "kgctl" or settings.since == "earliest":
        return None
    path = checkpoint / FIRST
    if not path.exists():
        # A checkpoint of an older kgctl.
        if is_claimed(checkpoint):
            return None
        make_folder(checkpoint)
        write_durably(path, json.dumps(_ask(topic, settings)).encode())
    try:
        found = path.read_text()
        json.loads(found)[topic]
    except (ValueError, KeyError, TypeError):
        raise DamagedCheckpoint(path, "is not as kgctl wrote it", OTHER_OUT) from None
    return found


def _ask(topic: str, settings: RunSettings) -> dict[str, dict[str, int]]:
    where = LATEST if settings.since == "latest" else AtTimestamp(all_ms=int(settings.since))
    with LogEnds(settings.connection(SPARK_CLIENT_ID), committed_only=True) as log_ends:
        bounds = log_ends.bounds(log_ends.partitions(Selection(topics=(topic,))))
        return to_json(log_ends.resolve(where, bounds, "startingOffsets"))
