"""Transactions with each client: committed, aborted, fenced, timed out, with offsets, and across a kill of the broker."""

from __future__ import annotations

import contextlib

import pytest

from tests.clients.adapters import Client, Membership
from tests.clients.records import make_topic, produce, read, values
from tests.clients.transactional import COMMITTED, PARTITIONS, UNCOMMITTED, read_until, send, texts
from tests.harness.clusters import Cluster, fresh


@pytest.fixture
def topic(cluster: Cluster, client: Client) -> str:
    return make_topic(client, cluster, PARTITIONS, "transactional")


def test_readers_of_committed_data_skip_aborted_transactions(cluster: Cluster, client: Client, topic: str) -> None:
    first, aborted, second = values("first", 6), values("aborted", 6), values("second", 6)
    with contextlib.closing(client.transactional_producer(cluster.bootstrap_servers, fresh("id"))) as producer:
        for sent in (first, aborted, second):
            producer.begin()
            send(producer, topic, sent)
            producer.abort() if sent is aborted else producer.commit()
    assert sorted(read_until(client, cluster, topic, COMMITTED, set(second))) == sorted(first + second)
    assert sorted(read_until(client, cluster, topic, UNCOMMITTED, set(second))) == sorted(first + aborted + second)


def test_an_open_transaction_holds_back_readers_of_committed_data(cluster: Cluster, client: Client, topic: str) -> None:
    bootstrap = cluster.bootstrap_servers
    opened, plain = values("open", 3), values("plain", 3)
    with (
        contextlib.closing(client.transactional_producer(bootstrap, fresh("id"))) as producer,
        contextlib.closing(client.reader(bootstrap, topic, range(PARTITIONS), COMMITTED)) as reader,
    ):
        producer.begin()
        send(producer, topic, opened)
        produce(client, cluster, topic, plain, PARTITIONS)
        assert sorted(read_until(client, cluster, topic, UNCOMMITTED, set(plain))) == sorted(opened + plain)
        assert reader.poll(0.5) == []
        # A long poll is parked now, and the commit wakes it.
        producer.commit()
        assert sorted(texts(read(reader, 6))) == sorted(opened + plain)


def test_a_second_producer_fences_the_first_and_aborts_its_transaction(
    cluster: Cluster, client: Client, topic: str
) -> None:
    bootstrap, name = cluster.bootstrap_servers, fresh("id")
    lost, kept = values("lost", 3), values("kept", 3)
    with contextlib.closing(client.transactional_producer(bootstrap, name)) as zombie:
        zombie.begin()
        send(zombie, topic, lost)
        with contextlib.closing(client.transactional_producer(bootstrap, name)) as producer:
            with pytest.raises(Exception, match=r"(?i)fence|newer epoch|old epoch"):
                zombie.commit()
            producer.begin()
            send(producer, topic, kept)
            producer.commit()
    assert sorted(read_until(client, cluster, topic, COMMITTED, set(kept))) == kept


def test_offsets_are_committed_with_the_transaction(cluster: Cluster, client: Client, topic: str) -> None:
    """Consume, transform, produce: the first attempt aborts, the second commits."""
    bootstrap, group, output = cluster.bootstrap_servers, fresh("transform"), make_topic(client, cluster, PARTITIONS)
    given = values("v", 9)
    produce(client, cluster, topic, given, PARTITIONS)
    with contextlib.closing(client.transactional_producer(bootstrap, fresh("id"))) as producer:
        for attempt in ("aborted", "committed"):
            membership = Membership(group, topic, isolation=COMMITTED)
            with contextlib.closing(client.member(bootstrap, membership)) as consumer:
                consumed = read(consumer, len(given), 30)
                assert sorted(texts(consumed)) == given
                producer.begin()
                send(producer, output, [f"{attempt} {value}" for value in texts(consumed)])
                producer.send_offsets(consumer, topic, dict.fromkeys(range(PARTITIONS), 3))
                producer.abort() if attempt == "aborted" else producer.commit()
                expected = None if attempt == "aborted" else 3
                assert [consumer.committed(topic, p) for p in range(PARTITIONS)] == [expected] * PARTITIONS
    done = {f"committed {value}" for value in given}
    assert set(read_until(client, cluster, output, COMMITTED, done)) == done


def test_a_transaction_that_times_out_is_aborted(cluster: Cluster, client: Client, topic: str) -> None:
    late, after = values("late", 3), values("after", 3)
    producer = client.transactional_producer(cluster.bootstrap_servers, fresh("id"), timeout_ms=1000)
    with contextlib.closing(producer):
        producer.begin()
        # On a slow machine it may already be over while it is written.
        with contextlib.suppress(Exception):
            send(producer, topic, late)
        produce(client, cluster, topic, after, PARTITIONS)
        # The end of the transaction releases the records behind it.
        assert sorted(read_until(client, cluster, topic, COMMITTED, set(after))) == after
        with pytest.raises(Exception, match=r"."):
            producer.commit()
