"""Log offsets by time, committed offsets of groups, and commits on behalf of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from broker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from broker.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node, Repeated, chunks
from kgctl.client.net.errors import BrokerError, KgctlError, LeftOut, Unreachable
from kgctl.client.net.steps import Steps
from kgctl.model.groups import SHARE, Committed
from kgctl.model.topic_partition import Keys, TopicPartition

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
GROUPS_PER_REQUEST = 100
PARTITIONS_PER_REQUEST = 5000
NO_REPLICA = -1  # the replica id of a client
_MEMBERSHIP = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)
NO_GENERATION = -1  # of a commit outside of the group's membership


class OffsetAt(NamedTuple):
    """An offset and the timestamp of its record, or -1. Offset -1: no record is that new."""

    offset: int
    timestamp: int = -1
    leader_epoch: int = -1


def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, committed_only: bool = False
) -> Steps[dict[TopicPartition, OffsetAt | KgctlError]]:
    """The offset per partition at a timestamp in ms, or at LATEST, EARLIEST, MAX_TIMESTAMP; one request per leader.

    `committed_only` ends the log at the last stable offset, where a consumer that reads committed stops.
    """
    lowest = 7 if MAX_TIMESTAMP in wanted.values() else 2 if committed_only else 0

    def make(node: Node, partitions: list[TopicPartition]) -> list[Batch[TopicPartition]]:
        return [
            Batch(
                Ask(node.endpoint, _list_request(some, wanted, committed_only), ListOffsetsResponse, lowest),
                some,
                _read_list,
            )
            for some in chunks(partitions, PARTITIONS_PER_REQUEST)
        ]

    return (yield from cluster.at_leaders(sorted(wanted), make))


def found_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, committed_only: bool = False
) -> Steps[dict[TopicPartition, int]]:
    """As `list_offsets`, but only the offsets, of all partitions. Raises KgctlError if there is an error for one."""
    answers = yield from list_offsets(cluster, wanted, committed_only=committed_only)
    found = {}
    for partition, answer in answers.items():
        if isinstance(answer, KgctlError):
            raise answer
        found[partition] = answer.offset
    return found


def _list_request(
    partitions: Sequence[TopicPartition], wanted: Mapping[TopicPartition, int], committed_only: bool
) -> ListOffsetsRequest:
    row = ListOffsetsRequest.Partition
    topics = [
        ListOffsetsRequest.Topic(
            name=topic,
            partitions=[
                row(partition_index=number, timestamp=wanted[TopicPartition(topic, number)]) for number in numbers
            ],
        )
        for topic, numbers in _by_topic(partitions).items()
    ]
    return ListOffsetsRequest(replica_id=NO_REPLICA, isolation_level=int(committed_only), topics=topics)


def _read_list(answer: ListOffsetsResponse) -> dict[TopicPartition, OffsetAt | KgctlError]:
    return {
        TopicPartition(topic.name, row.partition_index): (
            BrokerError(
                row.error_code,
                f"{topic.name}-{row.partition_index}",
                asked=Asked(ListOffsetsRequest, topic=topic.name),
                by_leader=True,
            )
            if row.error_code
            else OffsetAt(row.offset, row.timestamp, row.leader_epoch)
        )
        for topic in answer.topics
        for row in topic.partitions
    }


# --- committed ---


def committed(
    cluster: Cluster, groups: Iterable[str]
) -> Steps[dict[str, dict[TopicPartition, Committed] | KgctlError]]:
    """All committed offsets of each group; many groups in one request where the coordinator can (Kafka 3.0).

    Of a group that is known as a share group, the start offsets.
    """
    names = list(groups)
    if shares := _share_groups(cluster, names):
        from kgctl.client.admin.share_offsets import share_offsets

        found = yield from share_offsets(cluster, shares)
        rest = [name for name in names if name not in found]
        return found | ((yield from committed(cluster, rest)) if rest else {})

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        if _takes_one_group(cluster, node):
            return [_fetch_one(node, name) for name in names]
        return [_fetch_many(node, some) for some in chunks(names, GROUPS_PER_REQUEST)]

    return (yield from cluster.at_coordinators(names, make))


def _share_groups(cluster: Cluster, groups: Iterable[str]) -> list[str]:
    return [group for group in groups if cluster.group_types.get(group) == SHARE]


def stable(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition]
) -> Steps[dict[TopicPartition, Committed] | KgctlError]:
    """The committed offsets of these partitions. One that an open transaction may replace has an error instead."""
    found = yield from stable_of(cluster, {group: list(partitions)})
    return found[group]


def stable_of(
    cluster: Cluster, wanted: Mapping[str, Sequence[TopicPartition]]
) -> Steps[dict[str, dict[TopicPartition, Committed] | KgctlError]]:
    """The same for many groups, each with its partitions; many groups in one request where the coordinator can."""
    if shares := _share_groups(cluster, wanted):
        found = yield from committed(cluster, shares)
        rest = {group: some for group, some in wanted.items() if group not in found}
        narrowed = {group: _only(some, wanted[group]) for group, some in found.items()}
        return narrowed | ((yield from stable_of(cluster, rest)) if rest else {})
    topics = {
        group: [
            OffsetFetchRequest.Topic(name=name, partition_indexes=some) for name, some in _by_topic(partitions).items()
        ]
        for group, partitions in wanted.items()
    }

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        if _takes_one_group(cluster, node):
            return [_fetch_one(node, name, topics[name]) for name in names]
        return [_fetch_of(node, {name: topics[name] for name in some}) for some in chunks(names, GROUPS_PER_REQUEST)]

    return (yield from cluster.at_coordinators(wanted, make))


def _only(
    found: dict[TopicPartition, Committed] | KgctlError, wanted: Iterable[TopicPartition]
) -> dict[TopicPartition, Committed] | KgctlError:
    return found if isinstance(found, KgctlError) else {key: found[key] for key in wanted if key in found}


def _takes_one_group(cluster: Cluster, node: Node) -> bool:
    offered = cluster.range_of(node.endpoint, OffsetFetchRequest.API_KEY)
    return offered is not None and offered[1] < 8


def _fetch_many(node: Node, groups: Sequence[str]) -> Batch[str]:
    rows = [OffsetFetchRequest.Group(group_id=group, topics=None) for group in groups]
    return Batch(Ask(node.endpoint, OffsetFetchRequest(groups=rows), OffsetFetchResponse, 8), groups, _read_groups)


def _fetch_of(node: Node, topics: Mapping[str, list[OffsetFetchRequest.Topic]]) -> Batch[str]:
    rows = [OffsetFetchRequest.Group(group_id=group, topics=some) for group, some in topics.items()]
    request = OffsetFetchRequest(groups=rows, require_stable=True)
    return Batch(Ask(node.endpoint, request, OffsetFetchResponse, 8), list(topics), _read_groups)


def _read_groups(answer: OffsetFetchResponse) -> dict[str, dict[TopicPartition, Committed] | KgctlError]:
    keys = Keys()
    return {row.group_id: _read_commits(row.group_id, row, keys) for row in answer.groups}


def _fetch_one(node: Node, group: str, topics: list[OffsetFetchRequest.Topic] | None = None) -> Batch[str]:
    request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=topics is not None)
    return Batch(
        Ask(node.endpoint, request, OffsetFetchResponse, 2, 7),
        [group],
        lambda answer: {group: _read_commits(group, answer, Keys())},
    )


def _read_commits(
    group: str, answer: OffsetFetchResponse | OffsetFetchResponse.Group, keys: Keys
) -> dict[TopicPartition, Committed] | KgctlError:
    if answer.error_code:
        return BrokerError(answer.error_code, f"group {group!r}", asked=Asked(OffsetFetchRequest, group=group))
    commits = {}
    for topic in answer.topics:
        of_topic = keys.of(topic.name)
        for row in topic.partitions:
            partition = of_topic[row.partition_index]
            if row.error_code:
                asked = Asked(OffsetFetchRequest, group, topic.name)
                error = BrokerError(row.error_code, f"group {group!r}, {partition}", asked=asked)
                commits[partition] = Committed(None, error=error.as_row())
            elif row.committed_offset >= 0:
                epoch = None if row.committed_leader_epoch < 0 else row.committed_leader_epoch
                commits[partition] = Committed(row.committed_offset, epoch, row.metadata or None)
    return commits


def commit(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int]
) -> Steps[dict[TopicPartition, KgctlError | None]]:
    """Like commit_each, for one group."""
    return (yield from commit_each(cluster, {group: offsets}))[group]


def commit_each(
    cluster: Cluster, offsets: Mapping[str, Mapping[TopicPartition, int | Committed]]
) -> Steps[dict[str, dict[TopicPartition, KgctlError | None]]]:
    """Commit for each group as a simple consumer (generation -1), which Kafka allows for groups without members.

    A `Committed` is stored with its leader epoch and metadata. None is success. Share groups get start offsets.
    """
    if shares := _share_groups(cluster, offsets):
        from kgctl.client.admin.share_offsets import alter_share_offsets

        altered = yield from alter_share_offsets(cluster, {group: offsets[group] for group in shares})
        rest = {group: some for group, some in offsets.items() if group not in altered}
        return altered | ((yield from commit_each(cluster, rest)) if rest else {})
    done: dict[str, dict[TopicPartition, KgctlError | None]] = {group: {} for group in offsets}
    # Usually one round for all groups; a group with more partitions takes part in several.
    parts = {group: list(chunks(sorted(some), PARTITIONS_PER_REQUEST)) for group, some in offsets.items()}
    for number in range(max(map(len, parts.values()), default=0)):
        wanted = {group: some[number] for group, some in parts.items() if number < len(some)}
        requests = {group: _commit_request(group, some, offsets[group]) for group, some in wanted.items()}
        found = yield from _at_coordinators(cluster, requests, OffsetCommitResponse, wanted, _repeated_commit)
        for group, errors in found.items():
            done[group] |= errors
    return done


def _repeated_commit(group: str, result: Any) -> Any:
    """A refusal by a group with members says nothing about the earlier attempt: they may have joined after it."""
    if isinstance(result, dict) and any(map(is_of_membership, result.values())):
        about = "the answer to the commit was lost, and the group has members by now: its offsets may have been changed"
        return dict.fromkeys(result, Unreachable(f"group {group!r}: {about}"))
    return result


def is_of_membership(error: KgctlError | None) -> bool:
    """Whether the coordinator refused a commit because the group has members."""
    return isinstance(error, BrokerError) and error.code in _MEMBERSHIP


def _commit_request(
    group: str, partitions: Iterable[TopicPartition], offsets: Mapping[TopicPartition, int | Committed]
) -> OffsetCommitRequest:
    topics = [
        OffsetCommitRequest.Topic(
            name=topic, partitions=[_commit_row(n, offsets[TopicPartition(topic, n)]) for n in numbers]
        )
        for topic, numbers in _by_topic(partitions).items()
    ]
    return OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=NO_GENERATION, member_id="", topics=topics)


def _commit_row(number: int, value: int | Committed) -> OffsetCommitRequest.Partition:
    row = OffsetCommitRequest.Partition
    if isinstance(value, int):
        return row(partition_index=number, committed_offset=value, committed_metadata="")
    assert value.offset is not None
    epoch = -1 if value.leader_epoch is None else value.leader_epoch
    return row(
        partition_index=number,
        committed_offset=value.offset,
        committed_leader_epoch=epoch,
        committed_metadata=value.metadata or "",
    )


def delete_each(
    cluster: Cluster, partitions: Mapping[str, Iterable[TopicPartition]]
) -> Steps[dict[str, dict[TopicPartition, KgctlError | None]]]:
    """Delete committed offsets of groups. Partitions of topics to which members subscribe are refused; None is success.

    The start offsets of share groups are deleted for whole topics.
    """
    if shares := _share_groups(cluster, partitions):
        from kgctl.client.admin.share_offsets import delete_share_offsets

        deleted = yield from delete_share_offsets(cluster, {group: list(partitions[group]) for group in shares})
        rest = {group: some for group, some in partitions.items() if group not in deleted}
        return deleted | ((yield from delete_each(cluster, rest)) if rest else {})
    row = OffsetDeleteRequest.Partition
    done: dict[str, dict[TopicPartition, KgctlError | None]] = {group: {} for group in partitions}
    parts = {group: list(chunks(sorted(some), PARTITIONS_PER_REQUEST)) for group, some in partitions.items()}
    for number in range(max(map(len, parts.values()), default=0)):
        wanted = {group: some[number] for group, some in parts.items() if number < len(some)}
        requests = {
            group: OffsetDeleteRequest(
                group_id=group,
                topics=[
                    OffsetDeleteRequest.Topic(name=topic, partitions=[row(partition_index=n) for n in numbers])
                    for topic, numbers in _by_topic(some).items()
                ],
            )
            for group, some in wanted.items()
        }
        for group, errors in (yield from _at_coordinators(cluster, requests, OffsetDeleteResponse, wanted)).items():
            done[group] |= errors
    return done


def _at_coordinators(
    cluster: Cluster,
    requests: Mapping[str, OffsetCommitRequest | OffsetDeleteRequest],
    response: Any,
    partitions: Mapping[str, Iterable[TopicPartition]],
    repeated: Repeated[str] | None = None,
) -> Steps[dict[str, dict[TopicPartition, KgctlError | None]]]:
    """One request for each group; the outcome of each of its partitions."""

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [
            Batch(Ask(node.endpoint, requests[name], response), [name], partial(_read_each, name)) for name in names
        ]

    def _read_each(group: str, answer: Any) -> dict[str, Any]:
        kind = type(requests[group])
        if getattr(answer, "error_code", 0):
            return {group: BrokerError(answer.error_code, f"group {group!r}", asked=Asked(kind, group))}
        errors = {
            (key := TopicPartition(topic.name, row.partition_index)): BrokerError(
                row.error_code, f"group {group!r}, {key}", asked=Asked(kind, group, topic.name)
            )
            if row.error_code
            else None
            for topic in answer.topics
            for row in topic.partitions
        }
        # The coordinator moves or loads for all partitions at once: then the whole request is retried.
        passing = [error for error in errors.values() if error and error.retriable]
        return {group: passing[0] if passing and len(passing) == len(errors) else errors}

    found = yield from cluster.at_coordinators(requests, make, repeated)
    done: dict[str, dict[TopicPartition, KgctlError | None]] = {}
    for group, result in found.items():
        if isinstance(result, KgctlError):
            done[group] = dict.fromkeys(partitions[group], result)
        else:
            left_out = {key: LeftOut(f"group {group!r}, {key}") for key in partitions[group] if key not in result}
            done[group] = {key: result[key] for key in partitions[group] if key in result} | left_out
    return done


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found
