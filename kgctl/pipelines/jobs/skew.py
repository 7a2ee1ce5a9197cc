"""skew: what each member and each partition of a group holds now."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame

from kgctl.client.admin.admin import Admin
from kgctl.model.groups import GroupDescription
from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.lookups import CLIENT_ID
from kgctl.pipelines.jobs.windows import UNTIL, computed_until
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas.group_facts import MEMBER_SKEW, PARTITION_SKEW
from kgctl.pipelines.schemas.groups import LAG
from kgctl.pipelines.tables.manifest import Note
from kgctl.pipelines.transforms import skew

Assigned = tuple[str, str | None, str | None, str | None, str | None, str | None, bool, str | None, int | None]


def run(run: RunContext, job: Job) -> int:
    """Rows written to f_member_skew and f_partition_skew."""
    settings = run.settings
    now_ms = time.time_ns() // 1_000_000
    last_ms = computed_until(run, PARTITION_SKEW)
    if settings.follow and last_ms is not None and now_ms < last_ms + 1000 * settings.step_s:
        return 0
    assigned, known = _assigned(run, job)
    lag = skew.newest(run.read(LAG)).persist()
    batch = f"skew-{now_ms}"
    notes: dict[str, Note] = {UNTIL: now_ms}
    try:
        members = run.write(MEMBER_SKEW, skew.member_skew(assigned, lag, now_ms), batch, notes)
        partitions = run.write(PARTITION_SKEW, skew.partition_skew(assigned, lag, now_ms, known), batch, notes)
    finally:
        lag.unpersist()
    return members.rows + partitions.rows


def _assigned(run: RunContext, job: Job) -> tuple[DataFrame, set[str] | None]:
    """What members have, and whose members are known; None: those of all groups."""
    with Admin(run.settings.connection(CLIENT_ID)) as admin:
        listing = admin.list_groups()
        groups = admin.describe_groups([group.group for group in listing.groups], offsets=False)
    errors = [*listing.errors, *(group.error for group in groups if group.error is not None)]
    if errors:
        run.emit(
            Progress(
                "note", f"{len(errors)} answers about groups are missing; the first: {errors[0].message}", job=job.name
            )
        )
    known = {group.group for group in groups if group.error is None} if errors else None
    return run.spark.createDataFrame([*_rows(groups)], skew.ASSIGNED_DDL), known


def _rows(groups: Iterable[GroupDescription]) -> Iterator[Assigned]:
    for group in groups:
        # In the other tables as in records: in lower case.
        kind = group.type and group.type.lower()
        for member in group.members:
            who = (group.group, kind, member.consumer_id, member.group_instance_id, member.client_id, member.host)
            known = member.current_assignment is not None
            if not member.owned():
                yield (*who, known, None, None)
            yield from ((*who, known, *place) for place in member.owned())
