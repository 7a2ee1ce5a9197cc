"""Which query owns a checkpoint: tables of one cluster are not mixed with another's, nor read twice by a new checkpoint."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.catalog import JOBS
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.tables.manifest import TableFolder
from kgctl.pipelines.whole_files import replace_file

MARKER = "kgctl.json"


def is_claimed(checkpoint: Path) -> bool:
    """Whether a run has begun with it."""
    return (checkpoint / MARKER).exists()


def claim(checkpoint: Path, job: str, cluster_id: str, settings: RunSettings) -> str:
    """The name that all batches of this checkpoint begin with; a new one where there is none yet. Raises as `check` does."""
    known = check(checkpoint, job, cluster_id, settings)
    if known is not None:
        return known
    name = f"{job}-{uuid.uuid4().hex[:8]}"
    checkpoint.mkdir(parents=True, exist_ok=True)
    told = {"name": name, "cluster_id": cluster_id, "source": settings.source, "out": settings.out}
    replace_file(checkpoint / MARKER, json.dumps(told).encode())
    return name


def check(checkpoint: Path, job: str, cluster_id: str, settings: RunSettings) -> str | None:
    """The name of a checkpoint. Precondition if checkpoint, tables, cluster and source do not belong together."""
    if is_claimed(checkpoint):
        told = _told(checkpoint, job, cluster_id, settings)
        if told["source"] != settings.source:
            raise Precondition(
                f"job {job}: it was begun with --source {told['source']}, whose checkpoint the other source cannot read"
            )
        return told["name"]
    for table in JOBS[job].writes:
        if TableFolder(settings.table_dir(table)).batches():
            raise Precondition(
                f"job {job}: {settings.table_dir(table)} has rows, but their checkpoint {checkpoint} is gone; reading "
                "all again would double them: give another --out, or remove the folder"
            )
    return None


def check_commits(job: str, cluster_id: str, settings: RunSettings) -> None:
    """Precondition if the commits that a job sets against this cluster's logs are another cluster's."""
    checkpoint = settings.checkpoint_dir / "decode"
    if is_claimed(checkpoint):
        _told(checkpoint, job, cluster_id, settings)


def _told(checkpoint: Path, job: str, cluster_id: str, settings: RunSettings) -> dict[str, str]:
    told: dict[str, str] = json.loads((checkpoint / MARKER).read_text())
    if told["cluster_id"] != cluster_id:
        raise Precondition(
            f"job {job}: the tables in {settings.out} were read from another cluster ({told['cluster_id']}, "
            f"this one is {cluster_id}); give another --out"
        )
    # A checkpoint within the folder moves with it.
    if settings.checkpoint is not None and told["out"] != settings.out:
        raise Precondition(
            f"job {job}: the checkpoint {settings.checkpoint} belongs to the tables in {told['out']}; those in "
            f"{settings.out} would lack what it has read: give it the --out it was made with, or another --checkpoint"
        )
    return told
