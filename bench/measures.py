"""What is measured on one started broker: one entry per line of the report."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bench import (
    cli,
    clients,
    connects,
    consumer_groups,
    dashboard,
    groups,
    load,
    members,
    recovery,
    secured,
    share_groups,
    streams,
    transactions,
    wire,
)
from bench.targets import Running
from bench.wire import Refused

IDLE_S = 1.0
LOAD_S = 2.0
WARM_UP_S = 0.3
STREAM_RECORDS = 100_000
CLIENT_RECORDS = 50_000
LINES = 64
GROUPS = 10_000
MEMBERS, TARGET_PARTITIONS = 1_000, 10_000
SHARED_RECORDS = {100: 40_000, 1: 10_000}  # by the number of records in a batch
ON_A_DASHBOARD = 1_000
ASKED_TIMES = 3
HANDSHAKES = 200
COMMAND_RUNS = 5
PRODUCERS = 16
READ_TRANSACTIONS = 200
COMMANDS = (
    "groups list",
    "groups list --plain",
    "groups describe --all",
    "groups describe --all --state",
    "groups describe --all --summary",
)


@dataclass(frozen=True)
class Figure:
    measure: str
    unit: str
    value: float
    more_is_better: bool = False


@dataclass(frozen=True)
class Absent:
    """A figure that does not exist for this broker, and why."""

    measure: str
    unit: str
    reason: str


@dataclass(frozen=True)
class Measure:
    """`only` is its name on the command line. With `alone` it gets its own broker, because it counts all groups, and with
    `secured` one that also has a SASL_SSL listener."""

    only: str
    take: Callable[[Running], Iterator[Figure | Absent]]
    alone: bool = False
    secured: bool = False


def _start(running: Running) -> Iterator[Figure | Absent]:
    wire.make_topic(running.address, "bench-first")
    wire.produce_one(running.address, "bench-first")
    yield Figure("spawn to first ack", "ms", (time.perf_counter() - running.began) * 1000)


def _cli(running: Running) -> Iterator[Figure | Absent]:
    if not running.target.writes_ready_file:
        yield Absent("commands", "x", "they are those of kgctl and its own broker")
        return
    times = cli.times_s(running)
    base = times.pop(cli.PASS)
    yield Figure(cli.PASS, "ms", base * 1000)
    for name, took_s in times.items():
        yield Figure(name, f"x {cli.PASS}", took_s / base)


def _rss(running: Running) -> Iterator[Figure | Absent]:
    time.sleep(IDLE_S)
    yield Figure("RSS idle", "MB", running.rss_mb())


def _streams(running: Running) -> Iterator[Figure | Absent]:
    topic = "bench-stream"
    wire.make_topic(running.address, topic)
    streams.produce_mb_s(running.bootstrap, topic, 1000)
    yield Figure(
        "produce 1 KiB, acks=all", "MB/s", streams.produce_mb_s(running.bootstrap, topic, STREAM_RECORDS), True
    )
    yield Figure("consume 1 KiB", "MB/s", streams.consume_mb_s(running.bootstrap, topic, STREAM_RECORDS), True)
    yield Figure("RSS after 100 MB in and out", "MB", running.rss_mb())


def _clients(running: Running) -> Iterator[Figure | Absent]:
    for topic, records in (("bench-clients-warm", 1000), ("bench-clients", CLIENT_RECORDS)):
        wire.make_topic(running.address, topic)
        found = sorted(clients.rates(running.bootstrap, topic, records), key=lambda one: clients.place(*one[:2]))
    ours = {action: rate for name, action, rate in found if name == clients.FIRST}
    for name, action, rate in found:
        yield Figure(f"{action} 1 KiB, {name}", "MB/s", rate.mb_s, True)
        yield Figure(f"{action} 1 KiB, {name}: CPU", "s per million", rate.cpu_s)
        if name != clients.FIRST:
            yield Figure(f"{action}, kgctl / {name}: MB/s", "x", ours[action].mb_s / rate.mb_s, True)
            yield Figure(f"{action}, kgctl / {name}: CPU", "x", ours[action].cpu_s / rate.cpu_s)


def _commits(running: Running) -> Iterator[Figure | Absent]:
    wire.make_topic(running.address, load.TOPIC)
    yield from _rates(running, "OffsetCommit", load.commit_lines)


def _heartbeats(running: Running) -> Iterator[Figure | Absent]:
    yield from _rates(running, "Heartbeat", load.heartbeat_lines)


def _rates(
    running: Running, what: str, make: Callable[[tuple[str, int], int, str], list[load.Line]]
) -> Iterator[Figure | Absent]:
    for connections, in_flight, label in ((1, 1, "1 in flight"), (1, 64, "64 in flight"), (LINES, 1, "64 connections")):
        lines = make(running.address, connections, f"{what}-{connections}-{in_flight}")
        try:
            load.run(lines, in_flight, WARM_UP_S)
            before = running.cpu_s()
            rate = load.run(lines, in_flight, LOAD_S)
            used = running.cpu_s() - before
        finally:
            load.close(lines)
        yield Figure(f"{what}, {label}", "/s", rate.per_s, True)
        yield Figure(f"{what}, {label}: broker CPU", "us each", used / rate.answers * 1e6)


def _transactions(running: Running) -> Iterator[Figure | Absent]:
    for version, protocol in ((2, ""), (1, ", first version")):
        if not transactions.supports(running.address, version):
            yield Absent(f"transactions{protocol}", "/s", "the broker does not serve them")
            continue
        topic = f"bench-transactions-{version}"
        wire.make_topic(running.address, topic, PRODUCERS)
        for count, records in ((1, 1), (1, 100), (PRODUCERS, 1), (PRODUCERS, 100)):
            name = f"transactions of {records}, {count} producer{'s' if count > 1 else ''}{protocol}"
            yield from _commits_in_transactions(running, name, topic, version, count, records)
        place = (topic, 0)
        producer = transactions.Producer(running.address, f"{topic}-read", place, records=1, version=version)
        reader = transactions.Reader(running.address, place)
        took_s = transactions.seconds_to_reader(producer, reader, READ_TRANSACTIONS)
        took_ms = sorted(second * 1000 for second in took_s)
        yield Figure(f"to a read_committed reader{protocol}", "ms", statistics.median(took_ms))
        yield Figure(f"the same, slowest of 100{protocol}", "ms", took_ms[READ_TRANSACTIONS * 99 // 100])


def _commits_in_transactions(
    running: Running, name: str, topic: str, version: int, count: int, records: int
) -> Iterator[Figure | Absent]:
    producers = [
        transactions.Producer(
            running.address, f"{topic}-{count}-{records}-{n}", (topic, n), records=records, version=version
        )
        for n in range(count)
    ]
    transactions.rate(producers, WARM_UP_S)
    before = running.cpu_s()
    per_s = transactions.rate(producers, LOAD_S)
    used = running.cpu_s() - before
    yield Figure(name, "/s", per_s, True)
    yield Figure(f"{name}: CPU", "us each", used / sum(producer.committed for producer in producers) * 1e6)


def _connects(running: Running) -> Iterator[Figure | Absent]:
    yield Figure("1,000 clients at once, first answers", "ms", connects.all_answered_s(running.address, 1000) * 1000)


def _joins(running: Running) -> Iterator[Figure | Absent]:
    for count in (3, 64, 1000):
        took = members.join_time_s(running.address, count, f"join-{count}")
        yield Figure(f"join of {count:,} members", "ms", took * 1000)


def _consumer_groups(running: Running) -> Iterator[Figure | Absent]:
    yield from _rates(running, "ConsumerGroupHeartbeat", consumer_groups.heartbeat_lines)
    name = f"consumer group of {MEMBERS:,} members to Stable"
    try:
        before = running.cpu_s()
        took_s = consumer_groups.join_time_s(running.address, "settling", MEMBERS, MEMBERS)
        yield Figure(name, "ms", took_s * 1000)
        yield Figure(f"{name}: broker CPU", "ms", (running.cpu_s() - before) * 1000)
    except (Refused, OSError) as error:
        yield Absent(name, "ms", str(error))
    name = f"target of {MEMBERS:,} members, {TARGET_PARTITIONS:,} partitions"
    try:
        took_s = consumer_groups.target_s(running.address, "target", MEMBERS, TARGET_PARTITIONS)
        yield Figure(name, "ms", took_s * 1000)
    except (Refused, OSError) as error:
        yield Absent(name, "ms", str(error))


def _share_groups(running: Running) -> Iterator[Figure | Absent]:
    cases = [(consumers, in_a_batch) for in_a_batch in (100, 1) for consumers in (1, 4)]
    for consumers, in_a_batch in cases:
        name = f"ShareFetch with acknowledgements, {consumers} consumer{'s' if consumers > 1 else ''}"
        name += ", batches of 1" if in_a_batch == 1 else ""
        try:
            tag, records = f"share-{consumers}-{in_a_batch}", SHARED_RECORDS[in_a_batch]
            groups_of_case = [f"{tag}-warm", tag]
            share_groups.prepare(running.address, tag, groups_of_case, records, in_a_batch)
            for group in groups_of_case:
                before = running.cpu_s()
                took_s = share_groups.seconds(running.address, tag, group, consumers, records)
                used = running.cpu_s() - before
        except (Refused, OSError) as error:
            yield Absent(name, "records/s", str(error))
            continue
        yield Figure(name, "records/s", records / took_s, True)
        yield Figure(f"{name}: broker CPU", "us each", used / records * 1e6)


def _groups(running: Running) -> Iterator[Figure | Absent]:
    many, address = f"{GROUPS:,} groups", running.address
    before, began = running.rss_mb(), time.perf_counter()
    census = groups.populate(address, GROUPS)
    yield Figure(f"{many}, 1 in 10 with a member: create", "s", time.perf_counter() - began)
    yield Figure("RSS per group", "KiB", (running.rss_mb() - before) * 1024 / GROUPS)
    yield _or_why(f"ListGroups, {many}", lambda: groups.list_s(address, census))
    for size in (100, 1000):
        yield _or_why(
            f"DescribeGroups, {many} by {size}", partial(lambda n: groups.describe_s(address, census, n), size)
        )
    for size in (100, 1000):
        yield _or_why(f"OffsetFetch, {many} by {size}", partial(lambda n: groups.fetch_s(address, census, n), size))
    yield Figure("RSS per group, after requests", "KiB", (running.rss_mb() - before) * 1024 / GROUPS)
    for words in COMMANDS:
        name = f"kgctl {words}"
        try:
            ran = groups.kgctl(running.bootstrap, census, *words.split())
        except Refused as error:
            yield Absent(name, "s", str(error))
        else:
            yield Figure(name, "s", ran.seconds)
            yield Figure(f"{name}: peak", "MB", ran.peak_mb)


def _dashboard(running: Running) -> Iterator[Figure | Absent]:
    census = groups.populate(running.address, ON_A_DASHBOARD)
    few = dashboard.redraws(running.bootstrap, census)
    yield Figure(f"kgctl ui, {ON_A_DASHBOARD:,} groups: redraw", "ms", few.took_s * 1000)
    name = f"kgctl ui, refresh every {dashboard.INTERVAL_S:g} s: change to screen"
    yield Figure(name, "ms", dashboard.change_shown_s(running.address) * 1000)
    more = groups.populate(running.address, GROUPS, first=ON_A_DASHBOARD)
    many = dashboard.redraws(running.bootstrap, more)
    yield Figure(f"kgctl ui, {GROUPS:,} groups: redraw / {ON_A_DASHBOARD:,} groups", "x", many.took_s / few.took_s)
    yield Figure(f"kgctl ui, {GROUPS:,} groups: longest gap of the loop", "ms", many.gap_s * 1000)


def _recovery(running: Running) -> Iterator[Figure | Absent]:
    name = f"killed with {recovery.COMMITS:,} offsets, to first"
    if not running.target.writes_ready_file:
        yield Absent(name, "ms", "unknown what the command of a peer leaves after a kill")
        return
    running.kill_and_start(recovery.fill)
    recovery.fetch_one(running.address)
    yield Figure(name, "ms", (time.perf_counter() - running.began) * 1000)
    yield Figure(f"{name}: cpu", "ms", running.cpu_s() * 1000)
    yield Figure(f"{name}: RSS", "MB", running.rss_mb())


def _secured(running: Running) -> Iterator[Figure | Absent]:
    if running.client_properties is None:
        yield Absent("SASL_SSL", "", "the command of the peer names no client.properties after READY HOST:PORT PID")
        return
    found = secured.Secured.read(running.client_properties)
    for name, authenticate in (("TLS handshakes", False), ("TLS and SCRAM", True)):
        secured.open_connections(found, 20, authenticate=authenticate)
        before = running.cpu_s()
        opened = secured.open_connections(found, HANDSHAKES, authenticate=authenticate)
        used = running.cpu_s() - before
        yield Figure(f"{name}, {secured.AT_A_TIME} at a time", "/s", opened.per_s, True)
        yield Figure(f"{name}: broker CPU", "ms each", used / HANDSHAKES * 1000)
    alone = secured.open_connections(found, 20, at_a_time=1, authenticate=True)
    handshake_s = statistics.median(alone.seconds)
    yield Figure("TLS and SCRAM, one at a time", "ms", handshake_s * 1000)
    for protocol, bootstrap, security in (
        ("PLAINTEXT", running.bootstrap, streams.PLAINTEXT),
        ("SASL_SSL", found.bootstrap, found.librdkafka()),
    ):
        topic = f"bench-{protocol}"
        wire.make_topic(running.address, topic)
        streams.produce_mb_s(bootstrap, topic, 1000, security)
        rate = streams.produce_mb_s(bootstrap, topic, STREAM_RECORDS, security)
        yield Figure(f"produce 1 KiB, {protocol}", "MB/s", rate, True)
        rate = streams.consume_mb_s(bootstrap, topic, STREAM_RECORDS, security)
        yield Figure(f"consume 1 KiB, {protocol}", "MB/s", rate, True)
    plain, tls = [], []
    for _ in range(COMMAND_RUNS):
        plain.append(secured.command_s("topics", "list", "--bootstrap", running.bootstrap))
        tls.append(secured.command_s("topics", "list", "--command-config", str(found.file)))
    plain_s, tls_s = statistics.median(plain), statistics.median(tls)
    yield Figure("kgctl topics list, PLAINTEXT", "ms", plain_s * 1000)
    yield Figure("kgctl topics list, SASL_SSL", "ms", tls_s * 1000)
    yield Figure("kgctl topics list, SASL_SSL / (PLAINTEXT + handshake)", "", tls_s / (plain_s + handshake_s))


def _or_why(name: str, seconds: Callable[[], float]) -> Figure | Absent:
    try:
        return Figure(name, "ms", statistics.median(seconds() for _ in range(ASKED_TIMES)) * 1000)
    except (Refused, OSError) as error:
        return Absent(name, "ms", str(error))


MEASURES = [
    Measure("start", _start),
    Measure("rss", _rss),
    Measure("cli", _cli, alone=True),
    Measure("streams", _streams),
    Measure("clients", _clients),
    Measure("commits", _commits),
    Measure("heartbeats", _heartbeats),
    Measure("transactions", _transactions),
    Measure("connects", _connects),
    Measure("joins", _joins),
    Measure("consumer-groups", _consumer_groups, alone=True),
    Measure("share-groups", _share_groups, alone=True),
    Measure("groups", _groups, alone=True),
    Measure("dashboard", _dashboard, alone=True),
    Measure("recovery", _recovery, alone=True),
    Measure("secured", _secured, alone=True, secured=True),
]
