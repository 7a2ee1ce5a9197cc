"""Subscriptions by regular expression: the coordinator looks up the topics that match, and stores them.

A lookup is a step of its own, soon after the heartbeat that asks for it; until then a new expression matches nothing. It resolves
all expressions of the group, so that they cause one rebalance. Only topics that the client of that heartbeat may describe count.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.cores.groups.consumer.changes import note_cause, note_topics, report
from broker.cores.groups.consumer.group import REGEX, ConsumerGroup
from broker.cores.groups.consumer.lookup import Lookup
from broker.cores.groups.consumer.member import ConsumerMember
from broker.cores.groups.counts import count
from broker.cores.groups.events import Cause
from broker.cores.groups.metadata_hash import metadata_hash
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import GroupEpochRecord, RegexRecord, ResolvedRegex
from broker.cores.groups.refusals import Refused
from broker.cores.groups.step import Step
from broker.cores.patterns import InvalidPattern, Pattern
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode

# A group's expressions are not looked up more often.
LEAST_INTERVAL_MS = 10_000


class Change(NamedTuple):
    """`is_resolved`: the member has changed to an expression whose topics are known. `is_refresh_due`: a lookup must follow."""

    is_resolved: bool = False
    is_refresh_due: bool = False


def change(
    step: Step, group: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember, records: list[StateRecord]
) -> Change:
    """What the heartbeat means for the group's expressions. Raises Refused if its expression is invalid."""
    old, new = member.subscription.topic_regex, updated.subscription.topic_regex
    is_resolved = is_due = False
    if old != new:
        if old and group.expressions.get(old) == 1:
            records.append(RegexRecord(group.group_id, old, None, step.wall_ms))
        if new and new not in group.expressions:
            _check(new)
            is_due = True
        elif new:
            is_resolved = new in group.regexes
    if (not is_due and not group.expressions) or (REGEX, group.group_id) in step.timers:
        return Change(is_resolved)
    last_ms = next((resolved.timestamp_ms for resolved in group.regexes.values()), None)
    if last_ms is not None and step.wall_ms <= last_ms + LEAST_INTERVAL_MS:
        return Change(is_resolved)
    expressions = dict(group.expressions)
    count(expressions, filter(None, (old,)), -1)
    count(expressions, filter(None, (new,)), 1)
    longest_ms = step.coordinator.settings.group_consumer_regex_refresh_interval_ms
    is_due |= len(expressions) != len(group.regexes)
    is_due |= group.regex_version < step.coordinator.topics.created
    is_due |= last_ms is not None and step.wall_ms > last_ms + longest_ms
    return Change(is_resolved, is_due and bool(expressions))


def resolve_soon(step: Step, group: ConsumerGroup) -> None:
    group.regex_client = step.request.principal, step.request.client_host
    step.timers.set((REGEX, group.group_id), step.now_ms)


def resolve(step: Step, group_id: str) -> None:
    """Look up the topics of all expressions of the group, in several steps if they are many."""
    group = step.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return
    if group.regex_client is not None:
        catalog = step.coordinator.topics
        names = list(catalog.visible_names(*group.regex_client))
        group.lookup = Lookup(names, list(group.expressions), {})
        group.regex_client, group.regex_version = None, catalog.created
    if group.lookup is None:
        return
    if group.lookup.advance():
        found, group.lookup = group.lookup.found, None
        _store(step, group, {regex: topics for regex, topics in found.items() if regex in group.expressions})
    else:
        step.timers.set((REGEX, group_id), step.now_ms + 1)


def _store(step: Step, group: ConsumerGroup, found: Mapping[str, frozenset[str]]) -> None:
    """Store what the expressions match; the group epoch grows if any topics have changed."""
    catalog, group_id, generation = step.coordinator.topics, group.group_id, group.generation
    is_first = not group.expressions.keys() <= group.regexes.keys()
    matched, records, has_changed = dict(group.matched), list[StateRecord](), False
    for regex, topics in found.items():
        before = group.regexes.get(regex)
        if topics != (before.topics if before is not None else frozenset()):
            has_changed = True
            count(matched, before.topics if before is not None else (), -1)
            count(matched, topics, 1)
        resolved = ResolvedRegex(topics, catalog.version, step.wall_ms)
        records.append(RegexRecord(group_id, regex, resolved, step.wall_ms))
    hashed = metadata_hash(group.named.keys() | matched.keys(), catalog)
    if has_changed or hashed != group.metadata_hash:
        records.append(GroupEpochRecord(group_id, generation + 1, hashed, step.wall_ms))
        if is_first:
            topics_match = "1 topic matches" if len(matched) == 1 else f"{len(matched)} topics match"
            note_cause(group, Cause.SUBSCRIPTION_CHANGED, f"{topics_match} the regular expressions")
        else:
            note_topics(group)
    group.seen = catalog.version, hashed
    for record in records:
        step.persist(record)
    report(step, group, generation)


def _check(regex: str) -> None:
    try:
        Pattern(regex)
    except InvalidPattern as error:
        raise Refused(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from None
