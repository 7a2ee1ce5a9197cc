"""anomalies: what each group does against what is usual, and when it left its usual range."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.checkpoints import read_until
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.lag import LAST_POINT
from kgctl.pipelines.jobs.windows import UNTIL, computed_until, first_window, spans
from kgctl.pipelines.schemas.group_facts import ANOMALIES, COMMIT_RATES, EXPECTED
from kgctl.pipelines.schemas.groups import LAG, REBALANCES
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.transforms import anomalies, expected
from kgctl.pipelines.transforms.windows import between

STEPS = 5
# The note with the length of the buckets in ms.
BUCKET = "bucket_ms"


def run(run: RunContext, job: Job) -> int:
    """Rows written to f_expected and anomalies. Only whole buckets, of which all tables have everything."""
    bucket_ms = STEPS * max(1, round(run.settings.step_s * 1000))
    check_bucket(run, bucket_ms)
    known = _known_until(run)
    if known is None:
        return 0
    until_ms = known - known % bucket_ms
    lag, commits, rebalances = (run.read(table) for table in (LAG, COMMIT_RATES, REBALANCES))

    def first() -> int | None:
        times = [lag.select("at"), commits.select("w_start"), rebalances.select("ended")]
        return first_window(reduce(DataFrame.union, times).agg(f.min("at")), bucket_ms)

    written = 0
    for begin_ms, end_ms in spans(run, (EXPECTED, ANOMALIES), first, until_ms):
        recent = run.read(EXPECTED).where(between("at", begin_ms - expected.REACH_MS, begin_ms))
        before = run.read(ANOMALIES).where(f.unix_millis("at") <= begin_ms)
        observed = expected.observed(lag, commits, rebalances, begin_ms, end_ms, bucket_ms).persist()
        rows = expected.expected(observed, recent, bucket_ms).persist()
        try:
            batch, notes = f"anomalies-{end_ms}", {UNTIL: end_ms, BUCKET: bucket_ms}
            written += run.write(EXPECTED, rows, batch, notes).rows
            found = anomalies.anomalies(rows, recent, before, end_ms)
            written += run.write(ANOMALIES, found, batch, notes).rows
        finally:
            rows.unpersist()
            observed.unpersist()
    return written


def check_bucket(run: RunContext, bucket_ms: int) -> None:
    """Raises Precondition if the history has other buckets: counts in them cannot be compared."""
    noted = open_table(run.settings.table_dir(EXPECTED.name)).state().notes.get(BUCKET)
    if noted is not None and int(noted) != bucket_ms:
        folders = " and ".join(str(run.settings.table_dir(table.name)) for table in (EXPECTED, ANOMALIES))
        raise Precondition(
            f"job anomalies: its history was made with --step {int(noted) / STEPS / 1000:g}, this run has --step "
            f"{bucket_ms / STEPS / 1000:g}: give the same --step, or remove {folders} to begin again"
        )


def _known_until(run: RunContext) -> int | None:
    """The time up to which all of the tables that exist hold everything, ms since 1970."""
    settings = run.settings
    last_point = open_table(settings.table_dir(LAG.name)).state().notes.get(LAST_POINT)
    times = (
        None if last_point is None else int(last_point),
        computed_until(run, COMMIT_RATES),
        read_until(settings.checkpoint_dir / "rebalances"),
    )
    return min((time for time in times if time is not None), default=None)
