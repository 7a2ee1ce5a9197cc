"""Counts what a producer does, for `metrics()`."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.client.producer.core.batch import Batch

_SMOOTHING = 0.05


class Measures:
    """Totals since the start; averages follow about the last 20 values."""

    def __init__(self) -> None:
        self.records = self.bytes = self.requests = self.batches = 0
        self.retries = self.errors = self.splits = 0
        self.latency_avg = self.latency_max = 0.0
        self.queue_time_avg = self.queue_time_max = 0.0
        self.batch_size_avg = self.records_per_request_avg = 0.0
        self.uncompressed_bytes = 0

    def sent(self, batches: Sequence[Batch], now_ms: int) -> None:
        records = 0
        for batch in batches:
            size = len(batch.encoded or b"")
            records += batch.count
            self.bytes += size
            self.uncompressed_bytes += batch.size_bytes
            waited = now_ms - batch.created_ms
            self.queue_time_avg += (waited - self.queue_time_avg) * _SMOOTHING
            self.queue_time_max = max(self.queue_time_max, waited)
            self.batch_size_avg += (size - self.batch_size_avg) * _SMOOTHING
        self.requests += 1
        self.batches += len(batches)
        self.records += records
        self.records_per_request_avg += (records - self.records_per_request_avg) * _SMOOTHING

    def answered(self, latency_ms: int) -> None:
        self.latency_avg += (latency_ms - self.latency_avg) * _SMOOTHING
        self.latency_max = max(self.latency_max, latency_ms)

    def retried(self, batch: Batch) -> None:
        self.retries += batch.count

    def failed(self, batch: Batch) -> None:
        self.errors += batch.count

    def as_metrics(self) -> dict[str, float]:
        """By Kafka's names of the group producer-metrics."""
        return {
            "record-send-total": self.records,
            "byte-total": self.bytes,
            "request-total": self.requests,
            "batch-total": self.batches,
            "batch-split-total": self.splits,
            "record-retry-total": self.retries,
            "record-error-total": self.errors,
            "request-latency-avg": round(self.latency_avg, 3),
            "request-latency-max": self.latency_max,
            "record-queue-time-avg": round(self.queue_time_avg, 3),
            "record-queue-time-max": self.queue_time_max,
            "batch-size-avg": round(self.batch_size_avg, 1),
            "records-per-request-avg": round(self.records_per_request_avg, 2),
            "compression-rate-avg": round(self.bytes / self.uncompressed_bytes, 4) if self.uncompressed_bytes else 1.0,
        }
