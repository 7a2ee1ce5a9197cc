"""A broker that is killed and restarted under its clients loses nothing that it acknowledged."""

from __future__ import annotations

import contextlib

from tests.clients.adapters import Client
from tests.clients.group import Group
from tests.clients.records import make_topic, read, values
from tests.clients.transactional import COMMITTED, read_until, send
from tests.harness.clusters import Cluster, fresh

PARTITIONS = 3


def test_members_continue_and_nothing_acknowledged_is_lost(
    own_cluster: Cluster, client: Client, client_name: str
) -> None:
    bootstrap = own_cluster.bootstrap_servers
    topic, name = make_topic(client, own_cluster, PARTITIONS, "killed"), fresh("killed")
    before, during, after = values("before", 300), values("during", 300), values("after", 300)
    with (
        Group(client_name, bootstrap, name, topic, session_timeout_ms=6000) as group,
        contextlib.closing(client.producer(bootstrap)) as producer,
    ):
        group.start(3)
        group.wait_until_shared([1, 1, 1])
        sent = {v: producer.send(topic, v.encode(), partition=n % PARTITIONS) for n, v in enumerate(before)}
        producer.flush(20)
        group.wait_until(lambda: bool(group.committed), 20, lambda: "nothing was committed")

        # The kill hits records in flight, records stored but not acknowledged, and commits.
        sent |= {v: producer.send(topic, v.encode(), partition=n % PARTITIONS) for n, v in enumerate(during)}
        own_cluster.kill()
        committed = dict(group.committed)
        own_cluster.restart()
        sent |= {v: producer.send(topic, v.encode(), partition=n % PARTITIONS) for n, v in enumerate(after)}
        producer.flush(40)
        places = {value: future.result(10) for value, future in sent.items()}

        with contextlib.closing(client.admin(bootstrap)) as admin:
            found = admin.group_offsets(name, topic)
            assert {p: found[p] for p in committed if found[p] < committed[p]} == {}
        group.wait_until_received({*before, *during, *after}, 40)
        ends = {p: 1 + max(o.offset for o in places.values() if o.partition == p) for p in range(PARTITIONS)}
        group.wait_until_committed(ends, 40)
        assert len(group.live()) == 3
        group.wait_until_shared([1, 1, 1])
    with contextlib.closing(client.reader(bootstrap, topic, range(PARTITIONS))) as consumer:
        stored = read(consumer, len(places))
    by_place = {(r.partition, r.offset): (r.value or b"").decode() for r in stored}
    # Each record once, at its acknowledged offset: retries across the kill neither duplicate nor reorder.
    assert by_place == {(place.partition, place.offset): value for value, place in places.items()}
    for partition in range(PARTITIONS):
        in_order = [value for (p, _), value in sorted(by_place.items()) if p == partition]
        assert in_order == [v for v in places if places[v].partition == partition]


def test_a_transaction_continues_after_a_kill_of_the_broker(own_cluster: Cluster, client: Client) -> None:
    topic, other = (make_topic(client, own_cluster, PARTITIONS, stem) for stem in ("killed", "aborted"))
    before, after, gone = values("before", 30), values("after", 30), values("gone", 30)
    bootstrap = own_cluster.bootstrap_servers
    with (
        contextlib.closing(client.transactional_producer(bootstrap, fresh("id"))) as producer,
        contextlib.closing(client.transactional_producer(bootstrap, fresh("id"))) as aborter,
    ):
        producer.begin()
        send(producer, topic, before)
        aborter.begin()
        send(aborter, other, gone)
        own_cluster.kill()
        own_cluster.restart()
        send(producer, topic, after)
        producer.commit()
        aborter.abort()
        aborter.begin()
        send(aborter, other, after)
        aborter.commit()
        own_cluster.kill()
        own_cluster.restart()
    assert sorted(read_until(client, own_cluster, topic, COMMITTED, {*before, *after})) == sorted(before + after)
    assert sorted(read_until(client, own_cluster, other, COMMITTED, set(after))) == sorted(after)
