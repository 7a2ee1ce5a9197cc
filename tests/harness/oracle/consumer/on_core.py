"""Plays recorded walks on the group coordinator alone, without a log, sockets or real time.

Compared are the answers, the records of `__consumer_offsets`, and the state of the groups. What the server answers itself, such as
the creation of topics, is taken from the recording.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

from broker.cores.core import RequestContext
from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.records import (
    GenerationFloor,
    GroupRemoval,
    OffsetCommitRecord,
    PendingOffset,
    PendingOffsetsRemoval,
    PendingOffsetSuperseded,
    StateRecord,
    TopicRemoval,
    to_row,
)
from broker.cores.groups.settings import GroupSettings
from broker.cores.groups.step import GroupEffects
from broker.protocol.codec import decode, encode
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.offsets_topic import encode_offset_key
from broker.protocol.wire_types import Message
from tests.harness.group_core import handle
from tests.harness.oracle.consumer import forms, hashes, stored
from tests.harness.oracle.consumer.catalog import Catalog
from tests.harness.oracle.consumer.files import Recorded, State, Step, full_states
from tests.harness.oracle.consumer.names import Names
from tests.harness.oracle.consumer.player import UNIT_S, WAIT
from tests.harness.oracle.consumer.state import seen
from tests.harness.oracle.consumer.topics import TopicSet, stem_of
from tests.harness.oracle.replay import Difference

WALL_MS = 1_700_000_000_000
STEP_MS = 10
PREFIX = "walk-"
LAST_EPOCH = 32_767
ALL_OFFSETS = 1_000
CONTROL = 0


def settings_of(header: dict[str, Any]) -> GroupSettings:
    """Settings that only the server uses are left out."""
    named = {name.replace(".", "_"): value for name, value in header["settings"].items()}
    known: dict[str, str] = {name: value for name, value in named.items() if name in GroupSettings._fields}
    values: dict[str, Any] = {name: int(value) if value.isdigit() else value for name, value in known.items()}
    return GroupSettings(**values)


class CorePlayer:
    """A coordinator and the time of a walk."""

    def __init__(self, walk: Recorded, settings: GroupSettings) -> None:
        names = {symbol: hashes.named(stem_of(PREFIX, symbol), at) for at, symbol in enumerate(walk["topics"])}
        self.catalog = Catalog(names, walk["topics"])
        ids = {symbol: self.catalog.ids[name] for symbol, name in names.items() if name in self.catalog.ids}
        self.names = Names(TopicSet(PREFIX, names, ids, walk["topics"]), walk["groups"], walk["literals"])
        self._symbols: list[str] = walk["groups"]
        self.groups = [self.names.live[one] for one in self._symbols]
        self.now_ms = 1_000
        self._next_place = walk["literals"]
        self._asked: dict[int, Step] = {}
        self._records: list[Any] = []
        self._offsets: set[tuple[str, str, int]] = set()
        self._producers: dict[str, str] = {}  # producer ids by transactional id
        self._step: Step = {}
        self._settings = settings
        self.core = self._new_core()
        self.core.resume(self.now_ms, self._wall_ms())

    def _new_core(self) -> Coordinator:
        return Coordinator(self._settings, self._new_id, self.catalog)

    def play(self, step: Step) -> tuple[list[dict[str, Any]], list[Any]]:
        """The answers and the records that come before the next step."""
        self.now_ms += STEP_MS
        self._asked[step["t"]] = self._step = step
        self._records = []
        self.catalog.version += 1  # other topics of the cluster change all the time
        replies = list(self._let_pass())
        if step["api"] == WAIT:
            until_ms = self.now_ms + round(step["request"]["units"] * UNIT_S * 1000)
            while (wake_at := self.core.wake_at()) is not None and wake_at <= until_ms:
                self.now_ms = max(self.now_ms, wake_at)
                replies += self._let_pass()
            self.now_ms = until_ms
        elif (change := getattr(self, f"_on_{step['api']}", None)) is not None:
            change(step)
            replies += step["replies"]
        else:
            request = forms.build(forms.BY_NAME[step["api"]].request, step["request"], self.names)
            replies += self._replies(self._handled(request, step["t"], step["version"], step["client"]))
        replies += self._let_pass()
        replies.sort(key=lambda one: one["to"])
        # Those of other groups are in other partitions, which are not recorded.
        records = [one for one in self._records if one[1] in self._symbols]
        return replies, stored.in_runs(records)

    def state(self) -> State:
        fetched = [OffsetFetchRequest.Group(group_id=one, topics=None) for one in self.groups]
        asked: list[tuple[Message, int]] = [
            (ConsumerGroupDescribeRequest(group_ids=self.groups), 1),
            (DescribeGroupsRequest(groups=self.groups), 5),
            (OffsetFetchRequest(groups=fetched, require_stable=False), 8),
        ]
        answers = [self._handled(request, CONTROL, version, "control").replies[0] for request, version in asked]
        forms_ = [self._form(one.response, version) for one, (_, version) in zip(answers, asked, strict=True)]
        return seen(*forms_)

    # ---- requests that the server answers itself

    def _on_InitProducerId(self, step: Step) -> None:
        """It aborts an open transaction, whether it then succeeds or is to be repeated."""
        transactional_id = step["request"]["transactional_id"]
        if transactional_id in self._producers:
            self._end_transaction(self._producers[transactional_id], is_commit=False)
        [reply] = step["replies"]
        symbol = reply["response"]["producer_id"]
        if symbol == -1:
            return
        if symbol not in self.names.live:
            self.names.bind(symbol, 1_000 + len(self.names.live))
        self._producers[transactional_id] = symbol

    def _on_AddOffsetsToTxn(self, step: Step) -> None:
        """The transaction coordinator does this."""

    def _on_EndTxn(self, step: Step) -> None:
        [reply] = step["replies"]
        if not reply["response"]["error_code"]:
            self._end_transaction(step["request"]["producer_id"], is_commit=step["request"]["committed"])

    def _end_transaction(self, producer: str, *, is_commit: bool) -> None:
        """Kafka marks the pending offsets, which are in its log; ours are stored when they are committed."""
        arguments = self.names.live[producer], LAST_EPOCH, lambda group: True, ALL_OFFSETS
        effects, more = self.core.end_transaction(*arguments, self.now_ms, self._wall_ms(), is_commit=is_commit)
        assert not more
        self._keep(effects.state_records)
        for record in effects.state_records:
            list(self._stored(record))

    def _on_CreateTopics(self, step: Step) -> None:
        for topic in self._done(step, "topics"):
            wanted = next(one for one in step["request"]["topics"] if one["name"] == topic)
            self.catalog.create(self.names.live[topic], wanted["num_partitions"])
            self.names.bind_id(topic, self.catalog.ids[self.names.live[topic]])

    def _on_CreatePartitions(self, step: Step) -> None:
        for topic in self._done(step, "results"):
            wanted = next(one for one in step["request"]["topics"] if one["name"] == topic)
            self.catalog.grow(self.names.live[topic], wanted["count"])

    def _on_DeleteTopics(self, step: Step) -> None:
        for topic in self._done(step, "responses"):
            self.catalog.delete(self.names.live[topic])
            self._replies(self.core.topic_deleted(self.names.live[topic], self.now_ms, self._wall_ms()))

    def _done(self, step: Step, rows: str) -> list[str]:
        [reply] = step["replies"]
        return [one["name"] for one in reply["response"][rows] if one["error_code"] == 0]

    # ---- the coordinator

    def _handled(self, request: Message, ticket: int, version: int, client: str) -> GroupEffects:
        request = decode(type(request), encode(request, version), version)
        context = RequestContext(ticket, version, client, "/127.0.0.1", "User:ANONYMOUS", self._wall_ms())
        return handle(self.core, request, context, self.now_ms)

    def _let_pass(self) -> Iterator[dict[str, Any]]:
        """What is due by now."""
        while (wake_at := self.core.wake_at()) is not None and wake_at <= self.now_ms:
            yield from self._replies(self.core.advance(self.now_ms, self._wall_ms()))

    def _keep(self, records: list[StateRecord]) -> None:
        """What the coordinator stores. A player that recovers keeps it."""

    def _replies(self, effects: GroupEffects) -> list[dict[str, Any]]:
        self._keep(effects.state_records)
        for record in effects.state_records:
            self._records += self._stored(record)
        return [
            {"to": one.ticket, "response": self._form(one.response, self._asked[one.ticket]["version"])}
            for one in effects.replies
        ]

    def _form(self, response: Message, version: int) -> Any:
        # Through bytes and back, to prove that the response can be sent.
        message = decode(type(response), encode(response, version), version)
        return forms.recorded(forms.of_walk(message, self.names), version, self.names)

    def _stored(self, record: StateRecord) -> Iterator[Any]:
        """A state record in the form of the recordings; removals as the tombstones that follow them."""
        if isinstance(record, GenerationFloor | PendingOffsetsRemoval | PendingOffsetSuperseded):
            return
        if isinstance(record, TopicRemoval | GroupRemoval):
            for group, topic, partition in sorted(self._offsets):
                if record in (TopicRemoval(topic), GroupRemoval(group)):
                    self._offsets.discard((group, topic, partition))
                    yield stored.record(encode_offset_key(group, topic, partition), None, self.names)
            return
        if isinstance(record, PendingOffset):
            committed = OffsetCommitRecord(*record[2:-1])
            row = to_row(committed)
            found = stored.record(row.key, row.value, self.names)
            if found is not None:
                yield [*found, stored.PENDING]
            return
        row = to_row(record)
        found = stored.record(row.key, row.value, self.names)
        if found is not None:
            if found[0] == stored.OFFSET:
                place = record.group_id, record.topic, record.partition  # type: ignore[union-attr]
                (self._offsets.discard if row.value is None else self._offsets.add)(place)
            yield found

    def _new_id(self) -> str:
        """An id that makes the member's come next in Java's hash tables, and after those of clients as a text."""
        request, place = self._step["request"], self._next_place
        self._next_place += 1
        prefix = ""
        if self._step["api"] == "JoinGroup":
            group = self.core.group(self.names.live[request["group_id"]])
            if not isinstance(group, ConsumerGroup):
                prefix = f"{request.get('group_instance_id') or self._step['client']}-"
        for number in itertools.count():
            made = str(uuid.UUID(int=number)) if prefix else f"zz-{number}"
            if hashes.bucket(hashes.of_text(prefix + made)) == place:
                return made
        raise AssertionError

    def _wall_ms(self) -> int:
        return WALL_MS + self.now_ms


def play_walk(walk: Recorded, settings: GroupSettings) -> list[Difference]:
    """The differences of the first step that has any."""
    return differences(walk, CorePlayer(walk, settings))


def differences(walk: Recorded, player: CorePlayer) -> list[Difference]:
    for step, before, after in full_states(walk):
        where = f"seed {walk['seed']} step {step['t']} {step['api']} v{step['version']}"
        replies, records = player.play(step)
        found = (
            ("answers", step["replies"], replies),
            ("records", stored.in_runs(stored.of_committed(step, before)), records),
            ("state after", after, player.state()),
        )
        out = [Difference(f"{where}: {what}", want, got) for what, want, got in found if not forms.is_alike(want, got)]
        if out:
            return out
    return []
