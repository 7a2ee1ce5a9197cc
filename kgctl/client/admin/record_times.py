"""When the records at given offsets were written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kgctl.client.admin.log_reads import LogReads, is_damage, may_pass
from kgctl.client.admin.one_per_partition import one_per_partition
from kgctl.client.consumer.fetched import Damaged, Fetched
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.topic_partition import TopicPartition

Position: TypeAlias = "tuple[str, int, int]"
# One batch per partition is enough. A batch that is larger than its share of the answer is fetched with the next request.
FETCH = FetchOptions(max_wait_ms=0, min_bytes=0, max_bytes=16 << 20, max_partition_bytes=64 << 10)


def record_times(cluster: Cluster, wanted: Sequence[Position]) -> Steps[dict[Position, int | None]]:
    """Milliseconds since 1970 of the first record at or after each (topic, partition, offset).

    None where the log has no such record, or no longer, or a partition failed. Raises KgctlError if every partition failed
    for a reason that may pass.
    """
    found = yield from times_or_errors(cluster, wanted)
    failures = [time for time in found.values() if isinstance(time, KgctlError)]
    is_any_known = any(isinstance(time, int) for time in found.values())
    if failures and not is_any_known and all(error.retriable for error in failures):
        raise failures[0]
    return {one: None if isinstance(time, KgctlError) else time for one, time in found.items()}


def times_or_errors(cluster: Cluster, wanted: Sequence[Position]) -> Steps[dict[Position, int | KgctlError | None]]:
    """The same with the error of a partition that failed. Raises KgctlError if the cluster cannot be asked at all."""
    found: dict[Position, int | KgctlError | None] = dict.fromkeys(wanted)
    offsets: dict[TopicPartition, set[int]] = {}
    for topic, partition, offset in sorted(wanted):
        offsets.setdefault(TopicPartition(topic, partition), set()).add(offset)
    for some in one_per_partition(offsets):
        times = yield from _first_times(cluster, some)
        found |= {(*partition, some[partition]): time for partition, time in times.items()}
    return found


def _first_times(
    cluster: Cluster, offsets: Mapping[TopicPartition, int]
) -> Steps[dict[TopicPartition, int | KgctlError]]:
    leaders = yield from cluster.leaders(offsets)
    times: dict[TopicPartition, int | KgctlError] = {
        one: leader for one, leader in leaders.items() if isinstance(leader, KgctlError) and not leader.retriable
    }
    reads = LogReads(cluster, FETCH, {one: offset for one, offset in offsets.items() if one not in times})
    waits = iter(cluster.retry_waits)
    while not reads.all_finished:
        arrived = yield from reads.ask_leaders()
        for partition in list(reads.out_of_range):
            reads.remove(partition)
        for fetched in arrived:
            _note_first_time(fetched, reads, times)
        wait = 0.0 if arrived else next(waits, None)
        for partition, error in reads.failed.items():
            if wait is None or not may_pass(error):
                reads.remove(partition)
                # Reading the record itself reports damage; this is only about its time.
                if not is_damage(error):
                    times[partition] = error
        if wait and reads.failed and not reads.all_finished:
            yield Pause(wait, str(next(iter(reads.failed.values()))))
    return times


def _note_first_time(fetched: Fetched, reads: LogReads, times: dict[TopicPartition, int | KgctlError]) -> None:
    try:
        time = next((record.timestamp for batch in fetched.batches() for record in batch.records), None)
    except Damaged:
        reads.remove(fetched.partition)
        return
    if time is not None:
        times[fetched.partition] = time
        reads.remove(fetched.partition)
