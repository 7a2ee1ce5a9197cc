"""Plays recorded walks of share groups on the group coordinator alone, without a log, sockets or real time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from broker.cores.core import RequestContext
from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.records import GenerationFloor, GroupRemoval, StateRecord, TopicRemoval, to_row
from broker.cores.groups.settings import GroupSettings, no_configs
from broker.protocol.api_keys import APIS
from broker.protocol.codec import decode, encode
from broker.protocol.newer_group_records import SHARE_STATE_PARTITIONS, decode_newer_value, kind_of
from tests.harness.group_core import handle
from tests.harness.oracle.consumer.catalog import Catalog
from tests.harness.oracle.consumer.on_core import settings_of
from tests.harness.oracle.replay import Difference
from tests.harness.oracle.share.files import CLIENT_ID, Step, Walk, plain
from tests.harness.share_state import MemoryShareState

WALL_MS = 1_700_000_000_000
STEP_MS = 10


class Topics(Catalog):
    """Topics with the ids of the recording."""

    def __init__(self) -> None:
        super().__init__({}, {})

    def add(self, topic: str, topic_id: str, count: int) -> None:
        self.version += 1
        self.created = self.version
        self.counts[topic], self.ids[topic] = count, bytes.fromhex(topic_id)


class CorePlayer:
    """A coordinator and the time of a walk."""

    def __init__(self, settings: GroupSettings) -> None:
        self.topics = Topics()
        self.now_ms, self._ticket = 1_000, 0
        self._settings, self._share_state = settings, MemoryShareState()
        self.core = self._new_core()
        self.core.resume(self.now_ms, WALL_MS)

    def _new_core(self) -> Coordinator:
        return Coordinator(self._settings, lambda: "unexpected", self.topics, no_configs, lambda: self._share_state)

    def play(self, step: Step) -> tuple[Any, list[Any]]:
        """The answer, and the records that were stored."""
        self.now_ms += STEP_MS
        if "wait_ms" in step:
            return None, [*self._rows(self._let_pass(step["wait_ms"]))]
        if "topic" in step:
            name, topic_id, count = step["topic"]
            if count:
                self.topics.add(name, topic_id, count)
                return None, []
            self.topics.delete(name)
            effects = self.core.topic_deleted(name, self.now_ms, WALL_MS + self.now_ms)
            return None, [*self._rows(effects.state_records)]
        self._ticket += 1
        version = step["version"]
        request = decode(APIS[step["key"]].request, bytes.fromhex(step["request"]), version)
        context = RequestContext(
            self._ticket, version, CLIENT_ID, "/127.0.0.1", "User:ANONYMOUS", WALL_MS + self.now_ms
        )
        effects = handle(self.core, request, context, self.now_ms)
        (reply,) = effects.replies
        answer = decode(type(reply.response), encode(reply.response, version), version)
        return plain(answer), [*self._rows(effects.state_records)]

    def _let_pass(self, wait_ms: int) -> list[StateRecord]:
        until_ms, records = self.now_ms + wait_ms, list[StateRecord]()
        while (wake_at := self.core.wake_at()) is not None and wake_at <= until_ms:
            self.now_ms = max(self.now_ms, wake_at)
            records += self.core.advance(self.now_ms, WALL_MS + self.now_ms).state_records
        self.now_ms = until_ms
        return records

    def _keep(self, records: list[StateRecord]) -> None:
        """What the coordinator stores. A player that recovers keeps it."""

    def _rows(self, records: list[StateRecord]) -> Iterator[Any]:
        self._keep(records)
        for record in records:
            if isinstance(record, TopicRemoval | GroupRemoval | GenerationFloor):
                continue
            row = to_row(record)  # type: ignore[arg-type]
            yield [row.key.hex(), None if row.value is None else row.value.hex()]


def _content(records: list[Any]) -> list[Any]:
    """Records byte by byte, but topics whose states begin as a set: of those in one bucket of Kafka's table, any may be first."""
    found = []
    for key, value in records:
        raw = bytes.fromhex(key)
        if value is not None and kind_of(raw) == SHARE_STATE_PARTITIONS:
            found.append([key, value[:4], plain(decode_newer_value(raw, bytes.fromhex(value)))])
        else:
            found.append([key, value])
    return found


def play_walk(walk: Walk) -> list[Difference]:
    """The differences of the first step that has any."""
    return differences(walk, CorePlayer(settings_of(walk)))


def differences(walk: Walk, player: CorePlayer) -> list[Difference]:
    for place, step in enumerate(walk["steps"]):
        answer, records = player.play(step)
        found = (("answer", step["answer"], answer), ("records", _content(step["records"]), _content(records)))
        differing = [(what, want, got) for what, want, got in found if want != got]
        if differing:
            about = describe(step)
            return [Difference(f"seed {walk['seed']} step {place} {about}: {one[0]}", *one[1:]) for one in differing]
    return []


def describe(step: Step) -> str:
    if "topic" in step:
        return f"topic {step['topic']}"
    if "wait_ms" in step:
        return f"wait {step['wait_ms']} ms"
    request = decode(APIS[step["key"]].request, bytes.fromhex(step["request"]), step["version"])
    return f"{APIS[step['key']].name} {json.dumps(plain(request))}"
