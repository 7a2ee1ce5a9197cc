"""`archive --source kafka`: Spark's connector writes the same archive as kgctl's source, and each continues that of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.pipelines.archive.manifest import read_archive
from kgctl.pipelines.archive.verifying import verify
from kgctl.pipelines.settings import RunSettings
from tests.harness.clusters import Cluster
from tests.kgctl.pipelines.archive.clusters import against, archived, consumed, fill, transact
from tests.kgctl.pipelines.archive.following import Following
from tests.kgctl.pipelines.source.second_session import SecondSession
from tests.kgctl.pipelines.source.topics import Topics

pytestmark = [pytest.mark.reference, pytest.mark.timeout(600)]


def test_an_archive_of_both_sources_holds_what_a_consumer_sees(
    connector_session: SecondSession, cluster: Cluster, tmp_path: Path
) -> None:
    topics = Topics(cluster.bootstrap_servers)
    names = fill(topics)
    codecs, _, transactions, empty = names
    settings = RunSettings((), topics.bootstrap_servers, str(tmp_path), "kafka", archived=tuple(names))
    connector_session.archive(settings)
    assert archived(tmp_path, *names) == consumed(topics, *names)
    assert verify(tmp_path).findings == ()

    transact(topics, transactions, "abort", "commit")
    topics.count(empty, 5, 2)
    with Following(topics, tmp_path, *names, follow=False) as run:
        assert run.ends() is None
    topics.count(codecs, 7, 2, **{"compression.type": "lz4"})
    transact(topics, transactions, "commit", "abort")
    connector_session.archive(settings)
    assert archived(tmp_path, *names) == consumed(topics, *names)
    assert verify(tmp_path).findings == ()
    assert against(topics, read_archive(tmp_path)) == []
    assert read_archive(tmp_path).next_number == 3
