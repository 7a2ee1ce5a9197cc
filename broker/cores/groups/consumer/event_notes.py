"""What the next events of a consumer group need to know, and which of its topics have changed. All of it is soft state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from broker.cores.groups.events import Cause
from broker.cores.groups.topics import TopicCatalog

# Topic -> its id and partition count; None if it does not exist.
SeenTopics: TypeAlias = "dict[str, tuple[bytes, int] | None]"
# The topics of larger groups are not compared: the event then does not say which of them have changed.
MOST_TOPICS = 1_000
# An event names the first changes, and counts the others.
NAMED = 5


class EventNotes:
    """`has_cause`: the pending event has the cause of the epoch that this step begins.

    `has_topic_change`: the topics are not those of the present epoch. `started_by`: why it began, None if that is not known.
    """

    __slots__ = ("fenced", "has_cause", "has_topic_change", "started_by", "state", "state_since_ms", "topics")

    def __init__(self) -> None:
        self.has_cause = self.has_topic_change = False
        self.started_by: tuple[Cause | None, str] | None = None
        self.topics: SeenTopics | None = None  # as the last event of an epoch saw them
        self.fenced: set[str] = (
            set()
        )  # members that an event has reported as fenced, and that have sent no valid heartbeat since
        self.state = ""
        self.state_since_ms = -1  # wall clock; -1 if the group had this state before the start of the broker


def seen_topics(names: Iterable[str], catalog: TopicCatalog) -> SeenTopics | None:
    """None if they are too many."""
    out: SeenTopics = {}
    for name in names:
        if len(out) == MOST_TOPICS:
            return None
        topic_id, count = catalog.topic_id(name), catalog.partition_count(name)
        out[name] = None if topic_id is None or count is None else (topic_id, count)
    return out


def topic_changes(before: SeenTopics | None, now: SeenTopics | None) -> str:
    """What has happened to the topics, in words; "" if it is not known."""
    if before is None or now is None:
        return ""
    found = [text for name in sorted(before.keys() | now.keys()) if (text := _change(name, before, now))]
    more = [f"{len(found) - NAMED} more"] if len(found) > NAMED else []
    return ", ".join([*found[:NAMED], *more])


def _change(name: str, before: SeenTopics, now: SeenTopics) -> str | None:
    old, new = before.get(name), now.get(name)
    if old == new:
        return None
    if new is None:
        return f"{name} deleted"
    if old is None:
        return f"{name} created"
    return f"{name} created again" if old[0] != new[0] else f"{name} has {new[1]} partitions, {old[1]} before"
