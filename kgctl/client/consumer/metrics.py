"""Counts of a consumer, by the names of Kafka's consumer metrics."""

from __future__ import annotations

from kgctl.client.consumer.core import ConsumerCore


def metrics_of(core: ConsumerCore) -> dict[str, float]:
    """Totals since the start; `records-lag-max` and `records-lead-min` of now, if they are known."""
    counts = core.fetches.counts
    out: dict[str, float] = {
        **core.network.traffic.metrics(),
        "assigned-partitions": len(core.subscription.assigned),
        "bytes-consumed-total": counts.bytes,
        "fetch-latency-avg": counts.latency_ms / counts.responses if counts.responses else 0.0,
        "fetch-throttle-time-total": counts.throttled_ms,
        "fetch-total": counts.responses,
        "records-consumed-total": counts.records,
        "records-per-request-avg": counts.records / counts.responses if counts.responses else 0.0,
    }
    lags, leads = [], []
    for one in core.subscription.assigned:
        state = core.subscription.state(one)
        if (lag := state.lag(committed_only=core.options.committed_only)) is not None:
            lags.append(max(0, lag))
        if (lead := state.lead()) is not None:
            leads.append(max(0, lead))
    if lags:
        out["records-lag-max"] = max(lags)
    if leads:
        out["records-lead-min"] = min(leads)
    return out
