"""Which times a job with windows computes, when the run before ended between two of its tables. Without Spark."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.jobs.anomalies import BUCKET, check_bucket
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.windows import UNTIL, computed_until, end_of, spans
from kgctl.pipelines.schemas.group_facts import CHURN, EXPECTED, SESSIONS
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.tables.manifest import TableFolder

BOTH = (SESSIONS, CHURN)


@pytest.fixture
def run(tmp_path: Path) -> RunContext:
    settings = RunSettings(("churn",), "127.0.0.1:1", str(tmp_path))
    return RunContext(None, settings, frozenset(), "", lambda _: None, threading.Event())


def commit(run: RunContext, table: Table, until_ms: int) -> None:
    with TableFolder(run.settings.table_dir(table.name)).writing() as writer:
        staging = writer.stage(f"churn-{until_ms}")
        staging.mkdir()
        writer.commit(f"churn-{until_ms}", staging, [], {UNTIL: until_ms})


def test_a_first_run_begins_with_the_data_and_the_next_one_where_it_ended(run: RunContext) -> None:
    assert list(spans(run, BOTH, lambda: None, 900)) == []
    assert list(spans(run, BOTH, lambda: 100, 900)) == [(100, 900)]
    for table in BOTH:
        commit(run, table, 900)
    assert computed_until(run, CHURN) == 900
    assert list(spans(run, BOTH, lambda: 100, 900)) == []
    assert list(spans(run, BOTH, lambda: 100, 950)) == [(900, 950)]


def test_a_batch_that_only_some_tables_have_is_finished_first(run: RunContext) -> None:
    commit(run, SESSIONS, 900)
    assert list(spans(run, BOTH, lambda: 100, 950)) == [(100, 900), (900, 950)]
    commit(run, CHURN, 900)
    commit(run, SESSIONS, 950)
    assert list(spans(run, BOTH, lambda: 100, 950)) == [(900, 950)]


def test_a_history_of_anomalies_keeps_its_step(run: RunContext) -> None:
    check_bucket(run, 300_000)
    with TableFolder(run.settings.table_dir(EXPECTED.name)).writing() as writer:
        staging = writer.stage("anomalies-1")
        staging.mkdir()
        writer.commit("anomalies-1", staging, [], {UNTIL: 900, BUCKET: 300_000})
    check_bucket(run, 300_000)
    with pytest.raises(Precondition, match=r"made with --step 60, this run has --step 1: .*remove .*/f_expected and "):
        check_bucket(run, 5_000)


def test_a_following_run_computes_only_whole_windows() -> None:
    assert end_of(1234, 100, follow=True) == 1200
    assert end_of(1234, 100, follow=False) == 1234
