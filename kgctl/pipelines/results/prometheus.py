"""Writes the newest verdicts as a text file for Prometheus, as the textfile collector of node_exporter reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.results.tables import has_events
from kgctl.pipelines.results.verdicts import Verdict
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.replacing import replace_file


def write_metrics(
    path: Path,
    verdicts: Sequence[Verdict],
    tables: Sequence[Table],
    cluster: str,
    measured: Mapping[str, int | None],
) -> None:
    """Replace the file atomically. `measured`: of each table, the time of the newest evaluation. Raises KgctlError."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Verdicts(verdicts, tables, cluster, measured))
    try:
        replace_file(path, generate_latest(registry))
    except OSError as error:
        raise KgctlError(f"cannot write {path}: {error.strerror}") from None


class _Verdicts:
    def __init__(
        self, verdicts: Sequence[Verdict], tables: Sequence[Table], cluster: str, measured: Mapping[str, int | None]
    ) -> None:
        self._verdicts, self._tables, self._cluster, self._measured = verdicts, tables, cluster, measured

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        of_table: defaultdict[str, list[Verdict]] = defaultdict(list)
        for one in self._verdicts:
            of_table[one.table].append(one)
        for table in self._tables:
            yield from self._families(table, of_table[table.name])

    def _families(self, table: Table, verdicts: Sequence[Verdict]) -> Iterable[Metric]:
        prefix, what = f"kgctl_group_{table.name}", f"table {table.name}"
        labels = ["cluster", "group"]
        status = GaugeMetricFamily(
            f"{prefix}_status", f"1 for the status of the group in {what}.", labels=[*labels, "status"]
        )
        unhealthy = GaugeMetricFamily(f"{prefix}_unhealthy_partitions", "Partitions that are not OK.", labels=labels)
        partitions = GaugeMetricFamily(f"{prefix}_partitions", "Partitions that were judged.", labels=labels)
        lag = GaugeMetricFamily(f"{prefix}_lag_records", "Records that the group has not committed.", labels=labels)
        at = GaugeMetricFamily(
            f"{prefix}_evaluation_timestamp_seconds", "The time of the evaluation, since 1970.", labels=["cluster"]
        )
        for one in verdicts:
            own = [self._cluster, one.group]
            for word in dict.fromkeys([*table.verdicts, one.status]):
                status.add_metric([*own, word], float(word == one.status))
            if has_events(table):
                continue
            unhealthy.add_metric(own, one.unhealthy)
            partitions.add_metric(own, one.judged)
            if one.lag is not None:
                lag.add_metric(own, one.lag)
        # An evaluation that found no group is one, too; in older tables, only rows have its time.
        times = [*(one.at_ms for one in verdicts), self._measured.get(table.name)]
        newest_ms = max((time for time in times if time is not None), default=None)
        if newest_ms is not None:
            at.add_metric([self._cluster], newest_ms / 1000)
        return [status] if has_events(table) else [status, unhealthy, partitions, lag, at]
