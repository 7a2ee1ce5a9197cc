"""The metrics of the broker: requests, connections, logs, groups, sessions. Counters count since the start."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from broker.protocol.api_keys import APIS
from broker.protocol.errors import ErrorCode
from broker.protocol.latency_buckets import limits
from broker.server.handlers.cluster import store_sizes
from broker.server.metrics.client_families import client_families
from broker.server.request_times import BUCKETS, FLUSH
from broker.storage import OutOfDescriptors, StorageError

if TYPE_CHECKING:
    from broker.server.connections import Connections
    from broker.server.error_counts import ErrorCounts
    from broker.server.metrics.server import Later
    from broker.server.resources import Resources

# Topics beyond these are summed up.
MOST_TOPICS = 1000
MOST_SOFTWARES = 50
OTHERS = "(others)"
# How long partitions are looked at before other clients get their turn.
TURN_S = 0.005
_ERRORS = {int(code): code.name for code in ErrorCode}
# The upper limits of a histogram: powers of two microseconds, from 64 us to 16 s.
_BOUNDS = [1 << power for power in range(6, 25)]


class BrokerFamilies:
    """Collects the metrics of one broker, in several turns of the event loop if it has many partitions."""

    def __init__(self, resources: Resources, connections: Connections, errors: ErrorCounts) -> None:
        self._resources, self._connections, self._errors = resources, connections, errors

    async def collect(self) -> tuple[list[Metric], Later]:
        """The metrics of the broker, and what makes those of its clients, in a thread."""
        core = self._resources.telemetry().core
        core.forget(int(asyncio.get_running_loop().time() * 1000))
        families = [
            *self._process(),
            *self._requests(),
            *self._of_connections(),
            *self._groups(),
            *self._sessions(),
            *self._telemetry(),
        ]
        families += await self._topics()
        return families, partial(client_families, core.instances())

    def _process(self) -> Iterator[Metric]:
        resources = self._resources
        info = GaugeMetricFamily("kgctl_broker_info", "The broker.", labels=["cluster_id", "node_id", "durability"])
        info.add_metric([resources.log.cluster_id, str(resources.node_id), resources.config.durability], 1)
        yield info
        yield GaugeMetricFamily(
            "kgctl_start_time_seconds", "When the broker started, since 1970.", resources.started_ms / 1000
        )
        store, wal = store_sizes(resources)
        yield GaugeMetricFamily("kgctl_store_bytes", "The size of store.db.", store)
        yield GaugeMetricFamily("kgctl_wal_bytes", "The size of the write-ahead log of store.db.", wal)

    def _requests(self) -> Iterator[Metric]:
        times = self._connections.times.counts
        histogram = HistogramMetricFamily(
            "kgctl_request_seconds",
            "How long requests took until their answers were durable and handed over, with the waits of Fetch and JoinGroup.",
            labels=["api"],
            unit="seconds",
        )
        for key, counts in sorted(times.items()):
            if key in APIS:
                histogram.add_metric([APIS[key].name], *_histogram(counts))
        yield histogram
        flushes = HistogramMetricFamily("kgctl_flush_seconds", "How long flushes took.", unit="seconds")
        flushes.add_metric([], *_histogram(times.get(FLUSH, [0] * (BUCKETS + 1))))
        yield flushes
        errors = CounterMetricFamily(
            "kgctl_request_errors", "Errors in answers: of requests, topics, partitions.", labels=["api", "error"]
        )
        for (key, code), count in sorted(self._errors.counts.items()):
            name = _ERRORS.get(code, str(code))
            errors.add_metric([APIS[key].name if key in APIS else str(key), name], count)
        yield errors

    def _of_connections(self) -> Iterator[Metric]:
        connections = self._connections
        open_now = GaugeMetricFamily("kgctl_connections", "Open connections.", labels=["listener"])
        for name, count in connections.per_listener().items():
            open_now.add_metric([name], count)
        yield open_now
        yield GaugeMetricFamily("kgctl_connections_limit", "How many connections there may be.", connections.most)
        yield CounterMetricFamily("kgctl_connections_accepted", "Connections so far.", connections.admitted)
        softwares = Counter(
            (client.software_name, client.software_version) for client in (each.session.client for each in connections)
        )
        software = GaugeMetricFamily(
            "kgctl_client_connections", "Open connections by software.", labels=["software", "version"]
        )
        named = softwares.most_common(MOST_SOFTWARES)
        for labels, count in named:
            software.add_metric(labels, count)
        if len(named) < len(softwares):
            software.add_metric([OTHERS, ""], softwares.total() - sum(count for _, count in named))
        yield software
        received, sent = connections.traffic()
        yield CounterMetricFamily("kgctl_received_bytes", "Bytes of requests.", received)
        yield CounterMetricFamily("kgctl_sent_bytes", "Bytes of answers.", sent)
        yield GaugeMetricFamily("kgctl_queued_bytes", "Bytes of requests that wait.", connections.held.total)

    def _groups(self) -> Iterator[Metric]:
        runner = self._resources.groups
        states = GaugeMetricFamily("kgctl_groups", "Groups by type and state.", labels=["type", "state"])
        for labels, count in sorted(runner.states().items()):
            states.add_metric(labels, count)
        yield states
        yield CounterMetricFamily("kgctl_group_rebalances", "Rebalances that began.", runner.rebalances)
        yield GaugeMetricFamily("kgctl_group_requests_waiting", "Requests about groups that wait.", len(runner))

    def _sessions(self) -> Iterator[Metric]:
        sessions = self._resources.fetch_sessions()
        yield GaugeMetricFamily("kgctl_fetch_sessions", "Fetch sessions.", len(sessions))
        yield GaugeMetricFamily("kgctl_fetch_session_partitions", "Partitions in fetch sessions.", sessions.partitions)
        yield CounterMetricFamily("kgctl_fetch_session_evictions", "Evicted fetch sessions.", sessions.evictions)
        yield GaugeMetricFamily("kgctl_fetches_waiting", "Fetches that wait.", len(self._resources.waiters))

    def _telemetry(self) -> Iterator[Metric]:
        core = self._resources.telemetry().core
        yield GaugeMetricFamily("kgctl_telemetry_clients", "Clients that push metrics.", len(core.instances()))
        yield CounterMetricFamily("kgctl_telemetry_throttled", "Requests that came too early.", core.throttled)
        yield CounterMetricFamily(
            "kgctl_telemetry_unknown_subscriptions", "Pushes of old subscriptions.", core.unknown_subscriptions
        )

    async def _topics(self) -> Sequence[Metric]:
        partitions = GaugeMetricFamily("kgctl_topic_partitions", "Partitions of the topic.", labels=["topic"])
        size = GaugeMetricFamily("kgctl_topic_bytes", "Bytes of records of the topic.", labels=["topic"])
        offsets = CounterMetricFamily("kgctl_topic_offsets", "The sum of the log end offsets.", labels=["topic"])
        families = partitions, size, offsets
        others = [0, 0, 0]
        names = sorted(self._resources.log.topics)
        for number, name in enumerate(names):
            found = await self._sizes(name)
            if number >= MOST_TOPICS:
                others = [sum(pair) for pair in zip(others, found, strict=True)]
            else:
                _add(families, name, found)
        if len(names) > MOST_TOPICS:
            _add(families, OTHERS, others)
        return families

    async def _sizes(self, name: str) -> list[int]:
        """Partitions, bytes, offsets. Zeros for a topic that is deleted meanwhile."""
        log, loop = self._resources.log, asyncio.get_running_loop()
        found = [0, 0, 0]
        topic, index, until_s = log.topics.get(name), 0, loop.time() + TURN_S
        while topic is not None and index < topic.partition_count:
            try:
                partition = log.partition(name, index)
            except (OutOfDescriptors, StorageError):
                partition = None
            if partition is not None:
                found = [found[0] + 1, found[1] + partition.size_bytes, found[2] + partition.log_end_offset]
            index += 1
            if loop.time() > until_s:
                await asyncio.sleep(0)
                topic, until_s = log.topics.get(name), loop.time() + TURN_S
        await asyncio.sleep(0)
        return found


def _add(families: Sequence[GaugeMetricFamily | CounterMetricFamily], topic: str, values: Sequence[int]) -> None:
    for family, value in zip(families, values, strict=True):
        family.add_metric([topic], value)


def _histogram(counts: Sequence[int]) -> tuple[list[tuple[str, float]], float]:
    """The buckets of Prometheus, which count all that is below, and the sum in seconds."""
    buckets: list[tuple[str, float]] = []
    total, bucket = 0, 0
    for bound in _BOUNDS:
        while bucket < BUCKETS and limits(bucket)[1] <= bound:
            total += counts[bucket]
            bucket += 1
        buckets.append((str(bound / 1e6), total))
    return [*buckets, ("+Inf", sum(counts[:BUCKETS]))], counts[BUCKETS] / 1e6
