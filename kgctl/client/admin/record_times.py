"""When the records at given offsets were written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kgctl.client.admin.log_reads import LogReads
from kgctl.client.admin.one_per_partition import one_per_partition
from kgctl.client.consumer.fetched import Damaged, Fetched
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.cluster import Cluster, Node
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.topic_partition import TopicPartition

Position: TypeAlias = "tuple[str, int, int]"
# One batch per partition is enough. A batch that is larger than its share of the answer is fetched with the next request.
FETCH = FetchOptions(max_wait_ms=0, min_bytes=0, max_bytes=16 << 20, max_partition_bytes=64 << 10)


def record_times(cluster: Cluster, wanted: Sequence[Position]) -> Steps[dict[Position, int | None]]:
    """Milliseconds since 1970 of the first record at or after each (topic, partition, offset).

    None where the log has no such record, or no longer. Raises KgctlError if every partition failed for a reason that
    may pass.
    """
    found: dict[Position, int | None] = dict.fromkeys(wanted)
    failures: list[KgctlError] = []
    offsets: dict[TopicPartition, set[int]] = {}
    for topic, partition, offset in sorted(wanted):
        offsets.setdefault(TopicPartition(topic, partition), set()).add(offset)
    for some in one_per_partition(offsets):
        times = yield from _first_times(cluster, some, failures)
        found |= {(*partition, some[partition]): time for partition, time in times.items()}
    if failures and all(time is None for time in found.values()) and all(error.retriable for error in failures):
        raise failures[0]
    return found


def _first_times(
    cluster: Cluster, offsets: Mapping[TopicPartition, int], failures: list[KgctlError]
) -> Steps[dict[TopicPartition, int]]:
    times: dict[TopicPartition, int] = {}
    leaders = yield from cluster.leaders(offsets)
    reads = LogReads(cluster, FETCH, {one: at for one, at in offsets.items() if _may_have_leader(leaders[one])})
    failures += [error for error in leaders.values() if isinstance(error, KgctlError) and not error.retriable]
    while not reads.all_finished:
        try:
            arrived = yield from reads.fetch()
        except KgctlError as error:
            # The other partitions have answered by now.
            failures.append(error)
            break
        for partition in list(reads.out_of_range):
            reads.remove(partition)
        for fetched in arrived:
            _note_first_time(fetched, reads, times)
    return times


def _may_have_leader(leader: Node | KgctlError) -> bool:
    return isinstance(leader, Node) or leader.retriable


def _note_first_time(fetched: Fetched, reads: LogReads, times: dict[TopicPartition, int]) -> None:
    try:
        time = next((record.timestamp for batch in fetched.batches() for record in batch.records), None)
    except Damaged:
        # Reading the record itself reports the damage; this is only about its time.
        reads.remove(fetched.partition)
        return
    if time is not None:
        times[fetched.partition] = time
        reads.remove(fetched.partition)
