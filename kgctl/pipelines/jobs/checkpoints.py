"""kgctl's own files beside Spark's checkpoints: whose checkpoint it is, and how far in time its stream has read.

They keep the tables of one cluster from being mixed with another's, and from being read twice by a new checkpoint.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.catalog import JOBS, Job, upstream
from kgctl.pipelines.jobs.checkpoint_files import (
    OTHER_OUT,
    DamagedCheckpoint,
    last_planned,
    remove_stray_checksums,
    verify,
)
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.tables.durable import make_folder, write_durably
from kgctl.pipelines.tables.errors import Damaged, Newer
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.tables.replacing import replace_file

# Spark keeps the offsets of the last hundred batches: that many can be missing.
_MAX_MISSING = 100
# In 2001. Less is a number that was cut off.
_FIRST_MS = 10**12
OWNER, READ_UNTIL = "kgctl.json", "kgctl-read-until"
# The note of a batch that names the cluster: the folder may be used without the checkpoints.
CLUSTER = "cluster_id"


def is_claimed(checkpoint: Path) -> bool:
    """Whether a run has used it."""
    return (checkpoint / OWNER).exists()


def claim(checkpoint: Path, job: Job, cluster_id: str, settings: RunSettings) -> str:
    """The prefix of the ids of all batches of this checkpoint; a new one for a new checkpoint. Raises as `check` does."""
    known = check(checkpoint, job, cluster_id, settings)
    if known is not None:
        remove_stray_checksums(checkpoint)
        return known
    name = f"{job.name}-{uuid.uuid4().hex[:8]}"
    make_folder(checkpoint)
    owner = {"name": name, "cluster_id": cluster_id, "source": settings.source, "out": settings.out}
    write_durably(checkpoint / OWNER, json.dumps(owner).encode())
    return name


def check(checkpoint: Path, job: Job, cluster_id: str, settings: RunSettings) -> str | None:
    """The prefix of a claimed checkpoint. Raises Precondition if checkpoint, tables, cluster and source do not match."""
    if is_claimed(checkpoint):
        owner = _owner(checkpoint, job, cluster_id, settings)
        if owner["source"] != settings.source:
            raise Precondition(
                f"job {job.name}: its checkpoint was made with --source {owner['source']}, and the other source cannot "
                "read it"
            )
        verify(checkpoint, _last_in_tables(checkpoint, job, owner["name"], settings))
        return owner["name"]
    if (checkpoint / "offsets").exists():
        raise DamagedCheckpoint(checkpoint / OWNER, "is missing", OTHER_OUT)
    for table in job.writes:
        if open_table(settings.table_dir(table.name)).state().committed:
            raise Precondition(
                f"job {job.name}: {settings.table_dir(table.name)} has rows, but their checkpoint {checkpoint} is gone; "
                "reading everything again would double them: give another --out, or remove the folder"
            )
    _refuse_other_cluster(job, cluster_id, settings)
    return None


def check_inputs(job: Job, cluster_id: str, settings: RunSettings) -> None:
    """Raises Precondition if the tables that a job reads or adds to come from another cluster, or end at an unknown time."""
    for table in job.writes:
        theirs = open_table(settings.table_dir(table.name)).state().notes.get(CLUSTER, cluster_id)
        if theirs != cluster_id:
            raise _other_cluster(job, settings, str(theirs), cluster_id)
    for writer in upstream(job):
        checkpoint = settings.checkpoint_dir / writer.name
        if is_claimed(checkpoint):
            _owner(checkpoint, job, cluster_id, settings)
        if writer.is_stream and writer.name not in settings.jobs and read_until(checkpoint) is None:
            raise Precondition(
                f"job {job.name}: {checkpoint / READ_UNTIL} is missing, so it is not known how far job {writer.name} has "
                f"read: run job {writer.name} too, or give the --checkpoint that it used"
            )
    _refuse_other_cluster(job, cluster_id, settings)


def _refuse_other_cluster(job: Job, cluster_id: str, settings: RunSettings) -> None:
    """Raises Precondition if any other table in the folder is known to come from another cluster."""
    streams = [settings.checkpoint_dir / one.name for one in JOBS.values() if one.is_stream]
    known = next((found for one in streams if (found := _cluster_of_checkpoint(one)) is not None), None)
    if known is None:
        tables = [table for one in JOBS.values() for table in one.writes]
        known = next((found for one in tables if (found := _cluster_of_table(one, settings)) is not None), None)
    if known not in (None, cluster_id):
        raise _other_cluster(job, settings, str(known), cluster_id)


def _cluster_of_checkpoint(checkpoint: Path) -> str | None:
    """None if no run has claimed it, or if it is damaged; its own job reports that."""
    try:
        return str(json.loads((checkpoint / OWNER).read_text())["cluster_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _cluster_of_table(table: Table, settings: RunSettings) -> str | None:
    try:
        found = open_table(settings.table_dir(table.name)).state().notes.get(CLUSTER)
    except (Damaged, Newer):
        return None
    return None if found is None else str(found)


def _last_in_tables(checkpoint: Path, job: Job, name: str, settings: RunSettings) -> int | None:
    """The highest number of a batch of this checkpoint in the job's tables, from the last but one that was planned on."""
    planned = last_planned(checkpoint)
    states = [open_table(settings.table_dir(table.name)).state() for table in job.writes]
    numbers = range(planned + _MAX_MISSING, max(planned - 2, -1), -1)
    return next((n for n in numbers if any(state.knows(batch_id(name, n)) for state in states)), None)


def batch_id(name: str, number: int) -> str:
    """The id in the tables of a batch of the checkpoint with this name."""
    return f"{name}-{number:06d}"


def _owner(checkpoint: Path, job: Job, cluster_id: str, settings: RunSettings) -> dict[str, str]:
    path = checkpoint / OWNER
    try:
        owner: dict[str, str] = json.loads(path.read_text())
        if not all(isinstance(owner[name], str) for name in ("name", "cluster_id", "source", "out")):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise DamagedCheckpoint(path, "is not as kgctl wrote it", OTHER_OUT) from None
    if owner["cluster_id"] != cluster_id:
        raise _other_cluster(job, settings, owner["cluster_id"], cluster_id)
    # A checkpoint inside --out moves with it.
    if settings.checkpoint is not None and owner["out"] != settings.out:
        raise Precondition(
            f"job {job.name}: the checkpoint {settings.checkpoint} belongs to the tables in {owner['out']}; the tables in "
            f"{settings.out} would lack the records that it has read: give the --out it was made with, or another "
            "--checkpoint"
        )
    return owner


def _other_cluster(job: Job, settings: RunSettings, theirs: str, ours: str) -> Precondition:
    return Precondition(
        f"job {job.name}: the tables in {settings.out} were read from another cluster ({theirs}, this one is {ours}); "
        "give another --out"
    )


def set_read_until(checkpoint: Path, until_ms: int) -> None:
    """The stream has read every record of before `until_ms`, ms since 1970. An earlier time than is known changes nothing."""
    try:
        known = read_until(checkpoint)
    except DamagedCheckpoint:
        known = None
    if known is None or known < until_ms:
        replace_file(checkpoint / READ_UNTIL, str(until_ms).encode())


def read_until(checkpoint: Path) -> int | None:
    """None before the stream first reached the end of its topics."""
    path = checkpoint / READ_UNTIL
    try:
        found = int(path.read_text())
        if found < _FIRST_MS:
            raise ValueError
        return found
    except FileNotFoundError:
        return None
    except ValueError:
        raise DamagedCheckpoint(path, "is not a time", f"run job {checkpoint.name}, which writes it again") from None
