"""Derives events of a consumer group (KIP-848) or a share group (KIP-932) from the records that its coordinator stores.

The coordinator writes the records of one change in this order: members, group epoch, targets, epoch of the targets, and what a
member has now, which follows at the heartbeats of the others. So a rebalance lasts from the record of an epoch to the record that
shows the last member in it. A member that leaves is a tombstone, which does not say why it left.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from broker.light_dataclasses import dataclass, field
from broker.protocol.newer_group_records import (
    CURRENT_ASSIGNMENT,
    GROUP_METADATA,
    MEMBER,
    PARTITION_METADATA,
    REGULAR_EXPRESSION,
    SHARE_CURRENT_ASSIGNMENT,
    SHARE_GROUP_METADATA,
    SHARE_MEMBER,
    SHARE_TARGET_ASSIGNMENT,
    SHARE_TARGET_ASSIGNMENT_MEMBER,
    TARGET_ASSIGNMENT,
    TARGET_ASSIGNMENT_MEMBER,
)
from kgctl.client.admin.group_records import GroupRecord
from kgctl.model.groups import TopicPartitions
from kgctl.model.history import (
    DELETED,
    EMPTY,
    GROUP_DELETED,
    JOINED,
    LEFT_OR_TIMED_OUT,
    REPLACED,
    STABLE,
    STARTED,
    SUBSCRIPTION_CHANGED,
    TOPICS_CHANGED,
    GroupEventRow,
    MemberClient,
)

CONSUMER_TYPE, SHARE_TYPE = "consumer", "share"
EPOCHS = (GROUP_METADATA, SHARE_GROUP_METADATA)
MEMBERS = (MEMBER, SHARE_MEMBER)
TARGET_EPOCHS = (TARGET_ASSIGNMENT, SHARE_TARGET_ASSIGNMENT)
TARGETS = (TARGET_ASSIGNMENT_MEMBER, SHARE_TARGET_ASSIGNMENT_MEMBER)
CURRENT = (CURRENT_ASSIGNMENT, SHARE_CURRENT_ASSIGNMENT)
# The kinds of records of newer groups; Kafka 4.0 stored the partition counts of topics, and not their hash.
KINDS = {
    **dict.fromkeys((3, 4, 5, 6, 7, 8, REGULAR_EXPRESSION), CONSUMER_TYPE),
    **dict.fromkeys(range(9, 16), SHARE_TYPE),
}
SHARE_PARTITION_METADATA = 9
# As our broker calls it.
_TAKEN_OVER = "static member replaced"
_RECONCILED = 0

# Numbers of partitions by the id of the topic, in hexadecimal digits.
Owned: TypeAlias = "dict[str, list[int]]"
Cause: TypeAlias = "tuple[str | None, str | None]"


@dataclass(slots=True)
class Member:
    """What is stored of a member. `is_classic`: it speaks the classic protocol in a consumer group."""

    client_id: str
    host: str
    instance_id: str | None
    topics: list[str]
    regex: str | None
    assignor: str | None
    is_classic: bool
    owned: Owned = field(default_factory=dict)

    @property
    def client(self) -> tuple[str, str]:
        return self.client_id, self.host


class NewerGroup:
    """`is_whole`: all records of the group have been seen, and so all its members. `is_new`: it begins with the next record.

    All that is remembered is JSON, for pipelines that stop and continue.
    """

    def __init__(self, group: str, kind: str, *, is_whole: bool, is_new: bool = False) -> None:
        self.group, self.type, self.is_whole, self.is_new = group, kind, is_whole or is_new, is_new
        self.epoch: int | None = None
        self.members: dict[str, Member] = {}
        # The members of the classic group that it was, and at the end those of the last rebalance; and their clients.
        self.former: dict[str, tuple[str, str]] | None = None
        self.is_ending = self.is_removed = False  # the records of the group are being removed, and all are
        self._hash = 0
        self._target_epoch: int | None = None
        self._behind: dict[str, None] = {}  # members that have not reached the epoch
        # The owners of each partition when all members had last reached their epoch; None: not known.
        self._owners: dict[str, list[str]] | None = None
        self._change: Cause | None = None  # what has happened since the last record of an epoch
        self._newcomer: str | None = None  # the member that has joined in the change under way
        self._topics = ""  # the counts that Kafka 4.0 stores
        self._expressions: dict[str, list[str]] = {}
        self._undecided: Cause | None = None  # of an epoch that may change nothing
        self._is_first = False  # the epoch is the first one that was read; when it began is not known
        self._started_ms: int | None = None
        self._cause: Cause = (None, None)
        self._joined: list[str] = []
        self._left: list[str] = []
        self._left_causes: list[str] = []
        self._clients: dict[str, tuple[str, str]] = {}
        self._vacant: dict[str, str] = {}  # members without a successor yet, by the instance id of static members

    def to_json(self) -> str:
        from dataclasses import asdict  # only pipelines need it

        members = {name: asdict(member) for name, member in self.members.items()}
        return json.dumps({**vars(self), "members": members}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> NewerGroup:
        found = cls.__new__(cls)
        vars(found).update(json.loads(text))
        found.members = {name: Member(**fields) for name, fields in vars(found)["members"].items()}
        return found

    def add(self, record: GroupRecord) -> Iterator[GroupEventRow]:
        """The events that the next record of the group shows."""
        kind, value = record.kind, record.value
        if kind in EPOCHS:
            yield from self._add_epoch(value, record.timestamp)
        elif kind in MEMBERS:
            self._add_member(record.name, value)
        elif kind in TARGET_EPOCHS:
            yield from self._add_target_epoch(value, record.timestamp)
        elif kind in TARGETS:
            if value is not None and self._undecided is not None:
                yield self._start(self._undecided, record.timestamp)
        elif kind in CURRENT:
            yield from self._add_current(record.name, value, record.timestamp)
        elif kind in (PARTITION_METADATA, SHARE_PARTITION_METADATA):
            self._add_topics(value)
        elif kind == REGULAR_EXPRESSION:
            self._add_expression(record.name, value)

    def _settled_members(self) -> dict[str, tuple[str, str]]:
        """The members and their clients when the last rebalance ended."""
        found = {name: member.client for name, member in self.members.items() if name not in self._joined}
        return found | {name: self._clients[name] for name in self._left if name not in self._joined}

    def assignment(self) -> Mapping[str, tuple[TopicPartitions, ...]]:
        """What the members have, by topic id."""
        return {
            name: tuple(TopicPartitions(topic, tuple(sorted(numbers))) for topic, numbers in sorted(one.owned.items()))
            for name, one in self.members.items()
        }

    # ---- records

    def _add_epoch(self, value: Any, at_ms: int) -> Iterator[GroupEventRow]:
        if value is None:
            self.is_removed, self.former = True, self._settled_members()
            if self.epoch is not None:
                self._forget()
                yield self._row(DELETED, at_ms, (GROUP_DELETED, None), is_known=self.is_whole)
            return
        if isinstance(value, bytes):
            return
        if value.epoch == self.epoch:
            self._hash = value.metadata_hash
            return
        is_first, self.epoch = self.epoch is None, value.epoch
        has_changed = self._change is not None and self._change[0] is not None
        cause = self._cause_of(value.metadata_hash, is_first=is_first)
        self._hash, self._change, self._newcomer, self._vacant = value.metadata_hash, None, None, {}
        self._behind = dict.fromkeys(self.members)
        is_upgrade = bool(self.members) and all(member.is_classic for member in self.members.values())
        if is_first and is_upgrade:
            # A classic group becomes a consumer group in its generation; its members have not joined now.
            self._forget()
            self._upgrade()
            return
        if is_first and value.epoch <= 1 and self.members:
            self.is_new = self.is_whole = True
        if not self.is_whole:
            self._forget()
            return
        if is_first and self.is_new:
            self._owners = {}
        elif is_first:
            self._forget()
            self._is_first = True
        if not self.members:
            self._cause = cause
            yield from self._end(EMPTY, at_ms)
        elif self.type == SHARE_TYPE and not has_changed:
            # A share group begins epochs that change nothing (Kafka 4.1): a target that changes decides.
            self._undecided = cause
        elif not self._is_first:
            yield self._start(cause, at_ms)

    def _add_member(self, name: str, value: Any) -> None:
        known = self.members.get(name)
        if value is None:
            if self.is_ending:
                return
            self.members.pop(name, None)
            self._behind.pop(name, None)
            if known is not None:
                self._left.append(name)
                self._left_causes.append(LEFT_OR_TIMED_OUT)
                self._clients[name] = known.client
                if known.instance_id is not None:
                    self._vacant[known.instance_id] = name
                self._change = LEFT_OR_TIMED_OUT, None
            return
        if isinstance(value, bytes):
            return
        is_share = self.type == SHARE_TYPE
        member = Member(
            value.client_id,
            value.client_host,
            None if is_share else value.instance_id,
            sorted(value.subscribed_topic_names),
            None if is_share else value.subscribed_topic_regex or None,
            None if is_share else value.server_assignor,
            not is_share and value.classic_member is not None,
        )
        self.members[name] = member
        if known is not None:
            member.owned = known.owned
            if name != self._newcomer:
                self._note_changes(known, member)
            return
        self._joined.append(name)
        self._behind[name] = None
        self._clients[name] = member.client
        replaced = self._vacant.pop(member.instance_id, None) if member.instance_id is not None else None
        if replaced is not None:
            self._left_causes[self._left.index(replaced)] = JOINED
        self._newcomer = name
        self._change = JOINED, None if replaced is None else _TAKEN_OVER

    def _note_changes(self, known: Member, member: Member) -> None:
        # The topics of another expression count when they are found.
        is_found = member.regex != known.regex and member.regex in self._expressions
        if known.topics != member.topics or is_found:
            self._change = SUBSCRIPTION_CHANGED, None
        elif known.assignor != member.assignor and self._change is None:
            # This begins no epoch: the next one uses it.
            self._change = None, f"a member prefers the assignor {member.assignor or 'of the broker'}"

    def _add_topics(self, value: Any) -> None:
        """What a newer coordinator stores no more is no change."""
        now = value.hex() if isinstance(value, bytes) else ""
        if now and self._topics and now != self._topics and self._change is None:
            self._change = TOPICS_CHANGED, None
        self._topics = now

    def _add_expression(self, expression: str, value: Any) -> None:
        known = self._expressions.pop(expression, None)
        if value is None or isinstance(value, bytes):
            return
        found = self._expressions[expression] = sorted(value.topics)
        if known is None and found:
            self._change = SUBSCRIPTION_CHANGED, None
        elif self._change is None and found != (known or []):
            self._change = TOPICS_CHANGED, None

    def _add_target_epoch(self, value: Any, at_ms: int) -> Iterator[GroupEventRow]:
        if value is None:
            self.is_ending = True
            return
        self._undecided = None
        if not self.is_whole and not isinstance(value, bytes) and value.assignment_epoch != self._target_epoch:
            # Who reaches it is not known.
            self._target_epoch = self.epoch = value.assignment_epoch
            yield self._row(STABLE, at_ms, (None, None))

    def _add_current(self, name: str, value: Any, at_ms: int) -> Iterator[GroupEventRow]:
        member = self.members.get(name)
        if value is None or isinstance(value, bytes) or member is None:
            return
        member.owned = {one.topic_id.hex(): list(one.partitions) for one in value.assigned_partitions}
        if value.member_epoch == self.epoch and value.state == _RECONCILED:
            self._behind.pop(name, None)
        else:
            self._behind[name] = None
        if name == self._newcomer and value.member_epoch > 0:
            # It has taken the place of a static member, and that has begun no epoch.
            self._newcomer = self._change = None
            if self.is_whole and self._started_ms is None and not self._is_first:
                yield from self._end(REPLACED, at_ms)
        if self.is_whole and not self._behind and self.epoch is not None:
            yield from self._settle(at_ms)

    # ---- events

    def _cause_of(self, metadata_hash: int, *, is_first: bool) -> Cause:
        """Why an epoch begins; (None, ...) if the log does not show it, as when an admin asked for it."""
        change = self._change or (None, None)
        if change[0] is None and not is_first and metadata_hash != self._hash:
            return TOPICS_CHANGED, change[1]
        if change[0] is None and self.type == SHARE_TYPE:
            # Partitions that are ready, or have been left, are assigned.
            return self._cause if self._started_ms is not None else (TOPICS_CHANGED, None)
        return change

    def _upgrade(self) -> None:
        """Who has joined and left since the last generation of the classic group."""
        former = self.former
        for name, member in self.members.items():
            if former is not None and name not in former:
                self._joined.append(name)
                self._clients[name] = member.client
        for name, client in (former or {}).items():
            if name not in self.members:
                self._left.append(name)
                self._left_causes.append(LEFT_OR_TIMED_OUT)
                self._clients[name] = client

    def _start(self, cause: Cause, at_ms: int) -> GroupEventRow:
        self._undecided, self._is_first = None, False
        self._cause = cause
        if self._started_ms is None:
            self._started_ms = at_ms
        return self._row(STARTED, at_ms, cause, is_known=True)

    def _settle(self, at_ms: int) -> Iterator[GroupEventRow]:
        if self._started_ms is not None or self._is_first:
            yield from self._end(STABLE, at_ms)
        elif self._owners is None:
            self._owners = self._owners_now()

    def _end(self, event: str, at_ms: int) -> Iterator[GroupEventRow]:
        moved, assignment = None, None
        now, before = self._owners_now(), self._owners
        if event != REPLACED:
            self._owners = now
        if event == STABLE:
            moved = None if before is None else sum(now.get(place) != one for place, one in before.items())
            assignment = self.assignment()
        prepare_ms = None if self._started_ms is None else max(0, at_ms - self._started_ms)
        is_known = not self._is_first
        yield self._row(
            event,
            at_ms,
            self._cause,
            is_known=is_known,
            prepare_ms=prepare_ms,
            partitions_moved=moved if event == STABLE and is_known else None,
            assignment=assignment,
        )
        self._forget()

    def _owners_now(self) -> dict[str, list[str]]:
        """A static member is the same owner under every member id. Partitions of share groups have several."""
        found: dict[str, list[str]] = {}
        for name, member in self.members.items():
            for topic, numbers in member.owned.items():
                for number in numbers:
                    found.setdefault(f"{topic}-{number}", []).append(member.instance_id or name)
        return {place: sorted(owners) for place, owners in found.items()}

    def _forget(self) -> None:
        """Nothing is pending any more."""
        self._joined, self._left, self._left_causes, self._clients = [], [], [], {}
        self._started_ms, self._cause, self._is_first, self._undecided = None, (None, None), False, None

    def _row(self, event: str, at_ms: int, cause: Cause, *, is_known: bool = False, **fields: Any) -> GroupEventRow:
        """`is_known`: it is known who joined and left."""
        return GroupEventRow(
            group=self.group,
            timestamp=at_ms,
            generation=0 if self.epoch is None else self.epoch,
            event=event,
            cause=cause[0],
            reason=cause[1],
            prepare_ms=fields.get("prepare_ms"),
            complete_ms=None,
            members=0 if event == DELETED else len(self.members) if self.is_whole else None,
            joined_count=len(self._joined) if is_known else None,
            left_count=len(self._left) if is_known else None,
            partitions_moved=fields.get("partitions_moved"),
            commits_rejected=0,
            joined=tuple(self._joined) if is_known else (),
            left=tuple(self._left) if is_known else (),
            left_causes=tuple(self._left_causes) if is_known else (),
            assignment=fields.get("assignment"),
            group_type=self.type,
            clients={name: MemberClient(*client) for name, client in self._clients.items()} if is_known else {},
            is_derived=True,
        )
