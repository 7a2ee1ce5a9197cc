"""commit_rates: commits per group, partition and window of --step."""

from __future__ import annotations

import time
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.commits import user_commits
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.windows import UNTIL, end_of, first_window, spans
from kgctl.pipelines.schemas.group_facts import COMMIT_RATES
from kgctl.pipelines.schemas.groups import COMMITS, GROUP_EVENTS, QUARANTINE
from kgctl.pipelines.transforms import commit_rates
from kgctl.pipelines.transforms.lag import committed_at


def run(run: RunContext, job: Job) -> int:
    """Rows written to f_commit. Each run continues at the end of the last window of the one before."""
    settings = run.settings
    step_ms = max(1, round(settings.step_s * 1000))
    until_ms = end_of(run.inputs_complete_until(job) or time.time_ns() // 1_000_000, step_ms, follow=settings.follow)
    commits = user_commits(run)

    def first() -> int | None:
        return first_window(commits.agg(f.min(committed_at())), step_ms)

    written = 0
    for begin_ms, end_ms in spans(run, (COMMIT_RATES,), first, until_ms):
        rows = commit_rates.commit_rates(commits, _places(run), begin_ms, end_ms, step_ms)
        written += run.write(COMMIT_RATES, rows, f"commit-rates-{end_ms}", {UNTIL: end_ms}).rows
    return written


def _places(run: RunContext) -> DataFrame:
    """The places of all records of __consumer_offsets that were read."""
    names = ("log_partition", "log_offset", "log_ts")
    tables = [run.read(table).select(*names) for table in (COMMITS, GROUP_EVENTS)]
    bad = run.read(QUARANTINE).select("partition", "offset", "timestamp").toDF(*names)
    return reduce(DataFrame.union, tables, bad)
