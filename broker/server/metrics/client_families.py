"""The metrics that clients pushed (KIP-714), with their names after `client_`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from broker.cores.telemetry import Instance
from broker.protocol.compression import decompress
from broker.protocol.otlp import HISTOGRAM, SUM, Point, read_metrics
from broker.protocol.uuids import spelled
from broker.protocol.wire_types import DecodeError

# Of one push, uncompressed; and of all of them together. The clients that were silent for longest are left out.
MOST_BYTES = 1024 * 1024
MOST_POINTS = 20_000
LONGEST = 256
OWN = ("client_id", "client_instance_id")
_INVALID = re.compile(r"[^a-zA-Z0-9_]")


def client_families(instances: Iterable[Instance]) -> list[Metric]:
    """A family for each metric. It may run in a thread of its own: many pushes take long.

    A sum that counts since the push before is left out, because pushes may be missing.
    """
    families: dict[str, Metric] = {}
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for instance, point in _points(sorted(instances, key=lambda instance: -instance.push.wall_ms)):
        name = _name("client_" + point.metric)
        family = families.get(name)
        if family is None:
            family = families[name] = _family_of(name, point)
        labels = _labels(instance, point)
        place = name, tuple(sorted(labels.items()))
        if place not in seen and isinstance(family, _type_of(point)):
            seen.add(place)
            _add(family, labels, point)
    return list(families.values())


def _points(instances: Sequence[Instance]) -> Iterator[tuple[Instance, Point]]:
    left = MOST_POINTS
    for instance in instances:
        pushed = instance.push
        try:
            points = read_metrics(decompress(pushed.compression_type, pushed.metrics, MOST_BYTES))
        except DecodeError:
            continue
        shown = [
            point for point in points if point.value is not None and not (point.is_delta and point.kind != "gauge")
        ]
        if len(shown) > left:
            return
        left -= len(shown)
        for point in shown:
            yield instance, point


def _type_of(point: Point) -> type[Metric]:
    if point.kind == HISTOGRAM:
        return SummaryMetricFamily
    return CounterMetricFamily if point.kind == SUM and point.is_monotonic else GaugeMetricFamily


def _family_of(name: str, point: Point) -> Metric:
    made: Any = _type_of(point)
    family: Metric = made(name, "A metric of clients.")
    return family


def _add(family: Metric, labels: dict[str, str], point: Point) -> None:
    assert point.value is not None
    value = float(point.value)
    if isinstance(family, SummaryMetricFamily):
        family.add_sample(f"{family.name}_count", labels, point.observations or 0)
        family.add_sample(f"{family.name}_sum", labels, value)
    elif isinstance(family, CounterMetricFamily):
        if value >= 0:
            family.add_sample(f"{family.name}_total", labels, value)
    elif not math.isnan(value):
        family.add_sample(family.name, labels, value)


def _labels(instance: Instance, point: Point) -> dict[str, str]:
    found = {"client_id": instance.client.client_id, "client_instance_id": spelled(instance.id)}
    for name, value in point.labels:
        key = _name(name)
        if key and key not in OWN and not key.startswith("__"):
            found.setdefault(key, value[:LONGEST])
    return found


def _name(text: str) -> str:
    """A valid name of a metric or a label."""
    name = _INVALID.sub("_", text[:LONGEST])
    return f"_{name}" if name[:1].isdigit() else name
