"""Topics and groups move from one cluster to another, and back: each group reads on where it was."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer as OtherProducer

import kgctl
from kgctl.client.admin.offsets import LATEST
from kgctl.client.net.errors import KgctlError
from kgctl.model.plans import StoredGroup
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.groups import write_groups
from kgctl.pipelines.archive.layout import GroupOffset, GroupsSnapshot, TopicFacts
from tests.harness import ROOT
from tests.harness.clusters import Cluster, fresh, start
from tests.harness.commandline import Kgctl
from tests.kgctl.contexts.folders import Home
from tests.kgctl.pipelines.archive.making import NOON_MS, Row, add
from tests.kgctl.pipelines.replay.reading_back import Content, contents, records

PARTITIONS = 2
TOPICS, GROUPS = ("orders", "users"), ("billing", "audit", "done")


@pytest.fixture
def clusters(request: pytest.FixtureRequest) -> Iterator[list[Cluster]]:
    with ExitStack() as stack:
        yield [stack.enter_context(start(kind)) for kind in request.param]


def written(bootstrap: str) -> None:
    """Committed and aborted transactions, which leave gaps between the offsets, and plain records with headers."""
    kgctl_ = Kgctl(bootstrap)
    for topic in TOPICS:
        made = kgctl_("topics", "create", topic, "--partitions", PARTITIONS, "--config", "retention.ms=-1")
        assert made.exit_code == 0, made.output
    producer = OtherProducer(
        {"bootstrap.servers": bootstrap, "transactional.id": fresh("tx"), "compression.type": "lz4"}
    )
    producer.init_transactions(30)
    numbers = itertools.count()
    for ends in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for topic in TOPICS:
            for partition in range(PARTITIONS):
                for _ in range(9):
                    n = next(numbers)
                    producer.produce(
                        topic,
                        None if n % 7 == 0 else b"v%d" % n,
                        None if n % 3 == 0 else b"k%d" % n,
                        partition,
                        timestamp=NOON_MS + n,
                        headers=[("a", b"1"), ("b", None), ("a", b"2")] if n % 2 else [],
                    )
        ends(30)


def read_some(bootstrap: str, group: str, count: int) -> None:
    """A consumer of the group reads and commits at least this many records."""
    options = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
    with kgctl.Consumer(
        **options, isolation_level="read_committed", max_poll_records=5, enable_auto_commit=False
    ) as one:
        one.subscribe(TOPICS)
        done = 0
        while done < count:
            done += len(one.poll(0.2))
        one.commit()


def archive(bootstrap: str, folder: Path) -> None:
    """What `kgctl pipeline archive` writes, without Spark."""
    with Kgctl(bootstrap).admin() as admin:
        states = admin.with_logs([one for one in admin.group_states(GROUPS).values() if isinstance(one, StoredGroup)])
        stored = admin.stored_topics(TOPICS)
        keys = [TopicPartition(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
        ends = admin.list_offsets(dict.fromkeys(keys, LATEST))
        cluster_id = admin.cluster_id()
    rows = {}
    for topic in TOPICS:
        for number, some in records(bootstrap, topic, PARTITIONS).items():
            rows[TopicPartition(topic, number)] = [
                Row(one.offset, one.key, one.value, one.timestamp_ms, one.headers) for one in some
            ]
    facts = []
    for one in stored.values():
        assert one is not None
        assert not isinstance(one, KgctlError)
        configs = {config.name: config.value for config in one.configs or ()}
        facts.append(TopicFacts(one.topic, one.topic_id or "", one.partitions, one.replicas, configs))
    spans = {}
    for key in rows:
        end = ends[key]
        assert not isinstance(end, KgctlError)
        spans[key] = (0, end.offset)
    add(folder, rows, spans, topics=facts, cluster_id=cluster_id)
    offsets = [
        GroupOffset(
            group.group, one.topic, one.partition, one.offset, -1, one.metadata or "", one.timestamp,
            one.log_start or 0, one.log_end or 0,
        )
        for group in states
        for one in group.offsets
    ]  # fmt: skip
    write_groups(folder, GroupsSnapshot(NOON_MS + 10_000, tuple(offsets)))


def left(bootstrap: str) -> dict[tuple[str, str, int], list[Content]]:
    """What each group has not read: its records of each partition at or after the committed offset."""
    with Kgctl(bootstrap).admin() as admin:
        committed = admin.committed(GROUPS)
    found = {}
    for topic in TOPICS:
        read = records(bootstrap, topic, PARTITIONS)
        for group, commits in committed.items():
            assert not isinstance(commits, KgctlError)
            for number, some in read.items():
                offset = commits[TopicPartition(topic, number)].offset
                assert offset is not None
                found[group, topic, number] = [
                    (one.key, one.value, one.headers, one.timestamp_ms) for one in some if one.offset >= offset
                ]
    return found


@pytest.mark.parametrize(
    "clusters",
    [["kgctl", "kgctl"], pytest.param(["kafka", "kgctl", "kafka"], marks=pytest.mark.reference)],
    indirect=True,
    ids="-".join,
)
def test_topics_and_groups_move_to_another_cluster_and_on(clusters: list[Cluster], tmp_path: Path) -> None:
    addresses = [one.bootstrap_servers for one in clusters]
    written(addresses[0])
    for group, count in zip(GROUPS, (10, 30, 72), strict=True):
        read_some(addresses[0], group, count)
    expected = left(addresses[0])
    assert 0 < sum(len(some) for some in expected.values()) < 3 * 72
    whole = {topic: contents(addresses[0], topic, PARTITIONS) for topic in TOPICS}
    for number, (source, target) in enumerate(itertools.pairwise(addresses)):
        folder = tmp_path / str(number)
        archive(source, folder)
        for verb, options in (("replay", ["--all-topics", "--create"]), ("restore-groups", [])):
            done = Kgctl(target)("pipeline", verb, folder, *options, "--execute", "--no-journal")
            assert done.exit_code == 0, done.output
        assert {topic: contents(target, topic, PARTITIONS) for topic in TOPICS} == whole
        assert left(target) == expected


@pytest.mark.reference
@pytest.mark.timeout(400)
@pytest.mark.parametrize("clusters", [["kafka", "kgctl"]], indirect=True)
def test_the_recipe_of_the_documents_moves_a_kafka(
    clusters: list[Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (one.bootstrap_servers for one in clusters)
    written(old)
    for group, count in zip(GROUPS, (10, 30, 72), strict=True):
        read_some(old, group, count)
    home = Home(tmp_path)
    home.write(f'[contexts.old]\nbootstrap.servers = "{old}"\n[contexts.new]\nbootstrap.servers = "{new}"\n')
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "pipelines-archive.md").read_text()
    (block,) = re.findall(r"(?s)## Move a cluster\n.*?```\n(.*?)```", page)
    for line in block.splitlines():
        done = home.kgctl(*shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
    for topic in TOPICS:
        assert contents(new, topic, PARTITIONS) == contents(old, topic, PARTITIONS)
    assert left(new) == left(old)
