"""churn: sessions of members, and how often members come and leave."""

from __future__ import annotations

import time

from pyspark.sql import functions as f

from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.windows import UNTIL, end_of, first_window, spans
from kgctl.pipelines.schemas.group_facts import CHURN, SESSIONS
from kgctl.pipelines.schemas.groups import GROUP_EVENTS, MEMBERSHIPS
from kgctl.pipelines.transforms import churn

STEPS = 60


def run(run: RunContext, job: Job) -> int:
    """Rows written to f_churn. Each run continues at the end of the last window of the one before."""
    settings = run.settings
    step_ms = STEPS * max(1, round(settings.step_s * 1000))
    until_ms = end_of(run.inputs_complete_until(job) or time.time_ns() // 1_000_000, step_ms, follow=settings.follow)
    memberships = run.read(MEMBERSHIPS)

    def first() -> int | None:
        return first_window(memberships.agg(f.min("at")), step_ms)

    due = [*spans(run, (SESSIONS, CHURN), first, until_ms)]
    if not due:
        return 0
    rows = churn.with_clients(memberships, run.read(GROUP_EVENTS)).persist()
    written = 0
    try:
        for begin_ms, end_ms in due:
            sessions = churn.sessions(rows, begin_ms, end_ms)
            batch, notes = f"churn-{end_ms}", {UNTIL: end_ms}
            run.write(SESSIONS, sessions, batch, notes)
            written += run.write(CHURN, churn.churn(rows, sessions, begin_ms, end_ms, step_ms), batch, notes).rows
    finally:
        rows.unpersist()
    return written
