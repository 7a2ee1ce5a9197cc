"""The benchmark of the sources reads exactly what was written."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.bench.source_speed import fill, measure
from tests.kgctl.pipelines.source.topics import Topics


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_each_round_reads_the_whole_topic(topics: Topics) -> None:
    fill(topics.bootstrap_servers, "speed", 1000, partitions=2, value_bytes=20)
    # In a new process: a process can have only one session.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        rows = pool.submit(measure, topics.bootstrap_servers, "speed", (), rounds=1).result(200)
    keys = sum(len(str(n)) for n in range(1000))
    assert [(row.source, row.round, row.records, row.value_bytes) for row in rows] == [
        ("kgctl", 0, 1000, 20_000 + keys),
        ("kgctl", 1, 1000, 20_000 + keys),
    ]
    assert all(row.seconds > 0 and row.records_per_s > 0 for row in rows)


def test_an_existing_topic_is_not_filled(topics: Topics) -> None:
    name = topics.make()
    with pytest.raises(KgctlError, match="it exists already"):
        fill(topics.bootstrap_servers, name, 10)
