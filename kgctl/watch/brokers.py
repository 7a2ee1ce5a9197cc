"""What several snapshots of brokers show: rates of requests, and how long they took over the last minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from broker.light_dataclasses import dataclass
from broker.protocol.latency_buckets import limits
from kgctl.model.watched_brokers import FLUSHES, BrokerFigures, BrokersSnapshot, BrokerStatus, RequestFigures
from kgctl.watch.rates import LEAST_SPAN_S, WINDOW_S

US = 1e6


@dataclass(frozen=True, slots=True)
class _Seen:
    at_s: float
    status: BrokerStatus


class BrokersWatch:
    """Keeps the statuses of the last minute. After a step back in time, and after a restart of a broker, it begins again."""

    def __init__(self) -> None:
        self._seen: dict[int, deque[_Seen]] = {}

    def add(self, snapshot: BrokersSnapshot) -> dict[int, BrokerFigures]:
        found = {}
        for status in snapshot.statuses:
            seen = self._seen.setdefault(status.broker, deque())
            if seen and seen[-1].at_s >= snapshot.at_s and seen[-1].status is not status:
                seen.clear()
            if seen and seen[-1].status.started_ms != status.started_ms:
                seen.clear()
            if not seen or seen[-1].status is not status:
                seen.append(_Seen(snapshot.at_s, status))
            while len(seen) > 2 and seen[1].at_s <= snapshot.at_s - WINDOW_S:
                seen.popleft()
            found[status.broker] = _figures(seen[0], seen[-1])
        return found


def _figures(first: _Seen, last: _Seen) -> BrokerFigures:
    span_s = last.at_s - first.at_s
    seconds = span_s if span_s >= LEAST_SPAN_S else None
    known = [_request(name, counts, first, seconds) for name, counts in last.status.times.items()]
    requests = sorted((one for one in known if one.name != FLUSHES), key=lambda one: (-(one.rate or 0), -one.total))
    rates = [one.rate for one in requests if one.rate is not None]
    flushes = next((one for one in known if one.name == FLUSHES), None)
    return BrokerFigures(last.status, tuple(requests), flushes, sum(rates) if rates else None, seconds)


def _request(name: str, counts: Mapping[int, int], first: _Seen, seconds: float | None) -> RequestFigures:
    before = first.status.times.get(name, {}) if seconds is not None else {}
    recent = {bucket: more for bucket, count in counts.items() if (more := count - before.get(bucket, 0)) > 0}
    happened = sum(recent.values())
    return RequestFigures(
        name,
        sum(counts.values()),
        None if seconds is None else happened / seconds,
        quantile(recent, 0.5),
        quantile(recent, 0.99),
        None if not recent else limits(max(recent))[1] / US,
    )


def quantile(counts: Mapping[int, int], part: float) -> float | None:
    """The time in seconds below which this part of the counts is, in the middle of its bucket; None without counts."""
    left = part * sum(counts.values())
    for bucket in sorted(counts):
        left -= counts[bucket]
        if left <= 0:
            return sum(limits(bucket)) / 2 / US
    return None
