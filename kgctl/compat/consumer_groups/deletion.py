"""`--delete` and `--delete-offsets`."""

from __future__ import annotations

from collections.abc import Sequence

from broker.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kgctl.client.admin.removals import delete_groups
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.compat.consumer_groups.describe import all_groups
from kgctl.compat.consumer_groups.facts import failure, topic_failure
from kgctl.compat.consumer_groups.release import Release
from kgctl.compat.consumer_groups.topics import by_form, named_partitions
from kgctl.compat.hash_order import as_java_sorts, in_hash_order
from kgctl.compat.java_errors import JavaError, of_code
from kgctl.compat.options import Arguments
from kgctl.compat.tool import Ended, Session, columns, ended_by
from kgctl.exit_codes import PARTLY_FAILED
from kgctl.journal.making import of_deletions, of_offset_deletions
from kgctl.journal.results import Outcome
from kgctl.model.changes import DONE, FAILED, PLANNED, GroupChange, OffsetChange
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition

_BY_PARTITION = ("GROUP_SUBSCRIBED_TO_TOPIC", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PARTITION")


def run_delete(session: Session, arguments: Arguments, release: Release) -> Ended:
    names = all_groups(session) if arguments.has("all-groups") else arguments.values("group")
    session.host.may_change(names)
    plan = [GroupChange(name, None, PLANNED) for name in dict.fromkeys(names)]
    rows = session.change_groups(
        "delete",
        names,
        lambda states: of_deletions([row for row in plan if row.group in states], states),
        lambda: session.run(delete_groups(session.admin.cluster, plan), "findCoordinator"),
        lambda rows: [Outcome((row.group, None, None, None), row.error, row.status) for row in rows],
        "findCoordinator",
    )
    failed = {row.group: failure(session, row.error) for row in rows if row.error}
    deleted = in_hash_order(row.group for row in rows if not row.error)
    if not failed:
        session.out(release.deleted(deleted) + "\n")
        return Ended(0, 0)
    session.out("\nError: Deletion of some consumer groups failed:\n")
    for group in in_hash_order(failed):
        cause = failed[group].within() if release.causes_are_wrapped else failed[group]
        session.out(f"* Group '{group}' could not be deleted due to: {cause}\n")
    if deleted:
        session.out(f"\n{release.also_deleted(deleted)}\n")
        return Ended(PARTLY_FAILED, 0)
    return ended_by(failed.values())


# --- offsets ---


def run_delete_offsets(session: Session, arguments: Arguments, release: Release) -> Ended:
    group, topics = arguments.value("group") or "", arguments.values("topic")
    named, whole = by_form(topics)
    partitions = [key for topic in in_hash_order(named) for key in named_partitions(topic)]
    outcome: dict[TopicPartition, JavaError | None] = {}
    described = session.run(session.admin.cluster.metadata(whole), "describeTopics").topics if whole else []
    for topic in described:
        if topic.error_code:
            outcome[TopicPartition(topic.name or "", -1)] = topic_failure(topic.name or "", topic.error_code)
        partitions += [TopicPartition(topic.name or "", row.partition_index) for row in topic.partitions]
    session.host.may_change([group])
    wanted = in_hash_order(partitions)
    whole_error, by_partition = session.change_groups(
        "delete-offsets",
        [group],
        lambda states: of_offset_deletions([OffsetChange(group, *key, None) for key in wanted if states], states),
        lambda: _deleted(session, group, wanted),
        lambda found: _outcomes(group, wanted, *found),
        "findCoordinator",
    )
    outcome |= {key: whole_error or by_partition.get(key) for key in wanted}
    first = whole_error or next(filter(None, (outcome[key] for key in wanted)), None)
    session.out(_verdict(group, topics, first, release))
    _show_outcome(session, outcome, release)
    errors = [error for error in outcome.values() if error]
    if errors and len(errors) < len(outcome):
        return Ended(PARTLY_FAILED, 0)
    return ended_by([*errors, *([whole_error] if whole_error else [])])


def _outcomes(
    group: str,
    wanted: Sequence[TopicPartition],
    whole_error: JavaError | None,
    by_partition: dict[TopicPartition, JavaError | None],
) -> list[Outcome]:
    found = []
    for key in wanted:
        error = whole_error or by_partition.get(key)
        row = RowError(error.name, error.message or str(error)) if error else None
        found.append(Outcome((group, *key, None), row, FAILED if row else DONE))
    return found


def _deleted(
    session: Session, group: str, partitions: Sequence[TopicPartition]
) -> tuple[JavaError | None, dict[TopicPartition, JavaError | None]]:
    """Delete: the error of the whole request, or one per partition."""
    found = session.run(_delete_offsets(session.admin.cluster, group, partitions), "findCoordinator")
    if isinstance(found, KgctlError):
        return failure(session, found), {}
    return None, {key: of_code(code) if code else None for key, code in found.items()}


def _delete_offsets(
    cluster: Cluster, group: str, partitions: Sequence[TopicPartition]
) -> Steps[dict[TopicPartition, int] | KgctlError]:
    """One request, as the tool sends it, also for no partitions: then its answer is about the group."""
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    row = OffsetDeleteRequest.Partition
    topics = [
        OffsetDeleteRequest.Topic(name=topic, partitions=[row(partition_index=number) for number in some])
        for topic, some in numbers.items()
    ]
    request = OffsetDeleteRequest(group_id=group, topics=topics)

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [Batch(Ask(node.endpoint, request, OffsetDeleteResponse), names, read)]

    def read(answer: OffsetDeleteResponse) -> dict[str, object]:
        if answer.error_code:
            return {group: BrokerError(answer.error_code, group)}
        rows = (
            (topic.name, row.partition_index, row.error_code) for topic in answer.topics for row in topic.partitions
        )
        return {group: {TopicPartition(topic, number): code for topic, number, code in rows}}

    found = yield from cluster.at_coordinators([group], make)
    result: dict[TopicPartition, int] | KgctlError = found[group]
    return result


def _verdict(group: str, topics: Sequence[str], error: JavaError | None, release: Release) -> str:
    if error is None:
        return release.offsets_deleted(group, list(topics)) + "\n"
    if error.name in release.group_errors:
        return f"\nError: {release.group_errors[error.name].format(group=group)}\n"
    template = release.some_failed if error.name in _BY_PARTITION else release.unknown_failed
    return f"\nError: {template.format(name=error.name)}\n"


def _show_outcome(session: Session, outcome: dict[TopicPartition, JavaError | None], release: Release) -> None:
    row = columns(release.topic_width([key.topic for key in outcome]), release.partition_width, 15)
    session.out("\n" + row("TOPIC", "PARTITION", "STATUS"))
    names = {f"{key.topic}{key.partition}": key for key in in_hash_order(outcome)}
    for name in as_java_sorts(names):
        key, error = names[name], outcome[names[name]]
        number = key.partition if key.partition >= 0 else release.no_partition
        status = f"{release.error_prefix}{error}" if error else "Successful"
        session.out(release.reset_line + row(key.topic, number, status))
    session.out(release.line_end)
