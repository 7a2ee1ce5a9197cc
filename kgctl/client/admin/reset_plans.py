"""Plans resets of many groups in as few requests as the cluster allows: one ListOffsets per leader for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from broker.light_dataclasses import replace
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest
from kgctl.client.admin.groups import describe_groups
from kgctl.client.admin.offsets import EARLIEST, LATEST, committed, list_offsets, stable_of
from kgctl.client.admin.reset_targets import Logs, Scope, Target, note_pending, reset_row
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound, Precondition
from kgctl.client.net.steps import Steps
from kgctl.model.changes import FAILED, ResetPlan, ResetRow
from kgctl.model.failure import RowError
from kgctl.model.groups import CLASSIC, CONSUMER, SHARE, Committed, GroupDescription
from kgctl.model.topic_partition import TopicPartition

Commits = Mapping[TopicPartition, Committed]


def plan_resets(
    cluster: Cluster,
    groups: Sequence[str],
    scope: Scope,
    targets: Target | Mapping[str, Target],
    *,
    create: bool = True,
    known_only: bool = False,
) -> Steps[list[ResetPlan]]:
    """A plan for each group, in order; one that cannot be planned has an error and no rows.

    `targets` may have one for each group. Without `create`, a group that does not exist is an error. With `known_only`,
    topics for which a group has committed nothing are left out of its plan, which may then be empty.
    """
    described = {row.group: row for row in (yield from describe_groups(cluster, groups, offsets=False))}
    plans = {group: _begin(described[group], create=create) for group in groups}
    open_ones = [group for group, plan in plans.items() if plan.error is None]
    by_group = {group: targets if isinstance(targets, Target) else targets[group] for group in groups}
    sources = {target.source for target in by_group.values() if target.source is not None}
    commits = yield from committed(cluster, [*open_ones, *sorted(sources.difference(open_ones))])
    numbers = yield from _partition_numbers(cluster, [topic for topic, _ in scope.topics])
    wanted: dict[str, list[TopicPartition]] = {}
    for group in open_ones:
        own = commits[group]
        if isinstance(own, KgctlError):
            plans[group] = replace(plans[group], error=own.as_row())
            continue
        found = _with_source(by_group[group], commits)
        if isinstance(found, KgctlError):
            plans[group] = replace(plans[group], error=found.as_row())
            continue
        by_group[group] = found
        wanted[group], errors = _in_scope(scope, found, own, numbers, known_only=known_only)
        rows = tuple(ResetRow(group, t, n, None, None, None, status=FAILED, error=e) for (t, n), e in errors.items())
        plans[group] = replace(plans[group], rows=rows)
        if not (wanted[group] or errors or known_only):
            plans[group] = replace(plans[group], error=_nothing_in_scope(group, found, scope).as_row())
    logs = yield from _logs(cluster, {key for keys in wanted.values() for key in keys}, by_group.values())
    now = yield from stable_of(cluster, {group: keys for group, keys in wanted.items() if keys})
    for group, keys in wanted.items():
        own = commits[group]
        assert not isinstance(own, KgctlError)
        rows = tuple(reset_row(group, key, by_group[group], own.get(key), logs) for key in keys)
        rows = note_pending(rows, now.get(group, {}), refuse=not plans[group].is_active)
        plans[group] = replace(plans[group], rows=_in_order((*plans[group].rows, *rows)))
    return [plans[group] for group in groups]


def _in_order(rows: Iterable[ResetRow]) -> tuple[ResetRow, ...]:
    return tuple(sorted(rows, key=lambda row: (row.topic, -1 if row.partition is None else row.partition)))


def _begin(described: GroupDescription, *, create: bool) -> ResetPlan:
    group = described.group
    error = described.error
    if error is not None and error.name == NotFound.name:
        hint = f"Consumer group '{group}' does not exist; check the name, or add --create to give it offsets."
        return ResetPlan(group, None, (), error=None if create else RowError(NotFound.name, hint))
    if error is None and described.type not in (CLASSIC, CONSUMER, SHARE):
        error = Precondition(f"Offsets of group '{group}' cannot be reset: it is of type {described.type}.").as_row()
    return ResetPlan(group, described.state, (), described.type, described.members, error)


def _nothing_in_scope(group: str, target: Target, scope: Scope) -> NotFound:
    owner = target.source or group
    if scope.pattern is not None:
        return NotFound(f"Group '{owner}' has no committed offsets for topics that match {scope.pattern.pattern!r}.")
    return NotFound(f"Group '{owner}' has no committed offsets; name the topics to reset.")


def _with_source(target: Target, commits: Mapping[str, Any]) -> Target | KgctlError:
    """The target with the offsets of the group that it names, if it names one."""
    if target.source is None:
        return target
    found = commits[target.source]
    if isinstance(found, KgctlError):
        return found
    offsets = {key: one.offset for key, one in found.items() if one.offset is not None}
    if not offsets:
        return NotFound(f"Group '{target.source}' does not exist or has no committed offsets.")
    return replace(target, offsets=offsets)


def _partition_numbers(cluster: Cluster, topics: Sequence[str]) -> Steps[dict[str, frozenset[int] | RowError]]:
    """The partitions of each topic, or why they are not known."""
    if not topics:
        return {}
    answer = yield from cluster.metadata(sorted(set(topics)))
    found: dict[str, frozenset[int] | RowError] = {}
    for topic in answer.topics:
        name = topic.name or ""
        if topic.error_code:
            asked = Asked(MetadataRequest, topic=name)
            found[name] = BrokerError(topic.error_code, f"topic {name!r}", asked=asked).as_row()
        else:
            found[name] = frozenset(row.partition_index for row in topic.partitions)
    return found


def _in_scope(
    scope: Scope,
    target: Target,
    commits: Commits,
    numbers: Mapping[str, frozenset[int] | RowError],
    *,
    known_only: bool,
) -> tuple[list[TopicPartition], dict[tuple[str, int | None], RowError]]:
    if target.kind == "file":
        assert target.offsets is not None
        return sorted(target.offsets), {}
    owned = target.offsets if target.kind == "group" and target.offsets is not None else commits
    known_topics = {key.topic for key in commits} if known_only else None
    wanted = {key for key in owned if scope.has(key.topic) and (known_topics is None or key.topic in known_topics)}
    errors: dict[tuple[str, int | None], RowError] = {}
    for topic, asked in scope.topics:
        if known_topics is not None and topic not in known_topics:
            continue
        there = numbers[topic]
        if isinstance(there, RowError):
            errors[topic, None] = there
            continue
        if asked is None and target.kind == "group":
            of_source = {key for key in owned if key.topic == topic and key.partition in there}
            wanted |= of_source
            if not of_source:
                about = f"Group '{target.source}' has no committed offset for topic {topic}"
                errors[topic, None] = RowError("NO_COMMITTED_OFFSET", about)
            continue
        for number in there if asked is None else asked:
            if number in there:
                wanted.add(TopicPartition(topic, number))
            else:
                missing = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{number}")
                errors[topic, number] = missing.as_row()
    return sorted(wanted), errors


def _logs(cluster: Cluster, keys: set[TopicPartition], targets: Iterable[Target]) -> Steps[Logs]:
    if not keys:
        return Logs()
    wanted = sorted(keys)
    starts = yield from list_offsets(cluster, dict.fromkeys(wanted, EARLIEST))
    ends = yield from list_offsets(cluster, dict.fromkeys(wanted, LATEST))
    moments = {target.number for target in targets if target.kind == "timestamp"}
    if not moments:
        return Logs(starts, ends)
    (moment,) = moments
    return Logs(starts, ends, (yield from list_offsets(cluster, dict.fromkeys(wanted, moment))))
