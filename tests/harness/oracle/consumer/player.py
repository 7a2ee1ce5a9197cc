"""The clients of one walk on a running broker, and what is seen of its groups and of their records."""

from __future__ import annotations

import select
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.list_offsets import ListOffsetsRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.offsets_topic import TOPIC, partition_for
from broker.protocol.wire_types import Message
from tests.harness.oracle.consumer import forms, hashes, stored
from tests.harness.oracle.consumer.files import Recorded, State, Step
from tests.harness.oracle.consumer.names import TRANSACTIONAL_IDS, Names
from tests.harness.oracle.consumer.probe import wait_until_seen
from tests.harness.oracle.consumer.state import seen
from tests.harness.oracle.consumer.topics import Topics, TopicSets
from tests.harness.oracle.over_socket import Address, Line
from tests.harness.oracle.transactions.player import PASSING

WAIT, RESTART = "Wait", "Restart"
PARKED_IN = {"JoinGroup": "PreparingRebalance", "SyncGroup": "CompletingRebalance"}
ANSWER_WITHIN_S = 5.0
UNIT_S = 1.5  # what a step "Wait" waits is counted in units; timeouts are halves of them
IN_TIME = 0.4  # of a unit, by which a step may come late
LATEST = -1
CREATIONS = 200  # of a topic, one of 16 of which has an id in order
ENDS_OF_TRANSACTIONS = ("InitProducerId", "EndTxn")
CHANGES_OF_TOPICS = ("CreateTopics", "CreatePartitions", "DeleteTopics")


class Inconclusive(Exception):
    """The walk cannot be compared; the text says why."""


class Player:
    """Plays steps one at a time."""

    def __init__(
        self, address: Address, walk: Recorded, sets: TopicSets, restart: Callable[[], None] | None = None
    ) -> None:
        """`restart` kills the broker and starts it again; only walks with such a step need it."""
        self.address, self._restart = address, restart
        topics = sets.own(walk["topics"]) if walk["own_topics"] else sets.shared(walk["topics"])
        self.names = Names(topics, walk["groups"], walk["literals"])
        self.groups = [self.names.live[one] for one in walk["groups"]]
        self._symbols: list[str] = walk["groups"]
        self._own = walk["own_topics"]
        self._lines: dict[str, list[Line]] = defaultdict(list)
        self._asked: dict[int, Step] = {}
        self._control = Line(address)
        self._read = {partition: self._latest(partition) for partition in sorted(set(map(partition_for, self.groups)))}
        self._began: float | None = None
        self._units = 0

    def close(self) -> None:
        self._disconnect()
        if self._own:
            with Topics(self.address) as topics:
                topics.delete(
                    [name for name in (self.names.live[one] for one in self.names.topics) if topics.exists(name)]
                )

    def _disconnect(self) -> None:
        for line in (self._control, *(line for lines in self._lines.values() for line in lines)):
            line.sock.close()
        self._lines.clear()

    # ---- steps

    def perform(self, step: Step, awaited: set[int], within_s: float = ANSWER_WITHIN_S) -> list[dict[str, Any]]:
        """The answers that have come when all awaited ones have, or the time is over."""
        if step["api"] == WAIT:
            self._wait(step["request"]["units"])
            awaited = awaited - {step["t"]}
        elif step["api"] == RESTART:
            assert self._restart is not None
            self._disconnect()
            self._restart()
            self._control = Line(self.address)
            awaited = set()
        else:
            self._send(step)
        came = self.answers(awaited, within_s)
        if step["api"] in CHANGES_OF_TOPICS:
            self._see_topics(step, came)
        elif step["api"] in ENDS_OF_TRANSACTIONS:
            self._await_transactions()
        return came

    def answers(self, awaited: set[int], within_s: float) -> list[dict[str, Any]]:
        came = [
            {"to": to, "response": self._form(message, self._asked[to]["version"])}
            for to, message in self._messages(awaited, within_s)
        ]
        if not self.names.are_in_order():
            raise Inconclusive("ids that the broker has made are in another order")
        return came

    def unanswered(self) -> Iterator[Step]:
        """Requests that are parked."""
        return (line.step for lines in self._lines.values() for line in lines if line.step is not None)

    def _send(self, step: Step) -> None:
        self._asked[step["t"]] = step
        free = [line for line in self._lines[step["client"]] if line.step is None]
        line = free[0] if free else Line(self.address)
        if not free:
            self._lines[step["client"]].append(line)
        line.step = step
        request = forms.build(forms.BY_NAME[step["api"]].request, step["request"], self.names)
        line.send(request, step["version"], step["client"])

    def _messages(self, awaited: set[int], within_s: float) -> list[tuple[int, Message]]:
        came: list[tuple[int, Message]] = []
        deadline = time.monotonic() + within_s
        while True:
            waiting = {line.sock: line for lines in self._lines.values() for line in lines if line.step is not None}
            left = max(0.0, deadline - time.monotonic()) if awaited - {to for to, _ in came} else 0.0
            ready = select.select(list(waiting), [], [], left)[0] if waiting else []
            for sock in ready:
                step = waiting[sock].step
                assert step is not None
                message = waiting[sock].answer(forms.BY_NAME[step["api"]].response, step["version"])
                if message is not None:
                    waiting[sock].step = None
                    came.append((step["t"], message))
            if not ready and (not awaited - {to for to, _ in came} or time.monotonic() >= deadline):
                return sorted(came, key=lambda one: one[0])

    def _form(self, message: Message, version: int) -> Any:
        return forms.recorded(forms.of_walk(message, self.names), version, self.names)

    # ---- transactions

    def _await_transactions(self) -> None:
        """Until no transaction is being completed."""
        asked = DescribeTransactionsRequest(transactional_ids=[self.names.live[one] for one in TRANSACTIONAL_IDS])
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while any(one.transaction_state in PASSING for one in self._control.ask(asked, 0).transaction_states):
            if time.monotonic() > deadline:
                raise Inconclusive("a transaction does not complete")
            time.sleep(0.002)

    # ---- time

    def _wait(self, units: int) -> None:
        """Until this many units after the last step of this kind ended, or the walk began."""
        self._units += units
        time.sleep(max(0.0, self._now_s() - time.monotonic()))

    def watch_time(self) -> None:
        """Raise Inconclusive if so much time has passed that a timeout may have come before its step."""
        if self._units and time.monotonic() - self._now_s() > IN_TIME * UNIT_S:
            raise Inconclusive("the machine is too slow for timeouts")

    def _now_s(self) -> float:
        if self._began is None:
            self._began = time.monotonic()
        return self._began + self._units * UNIT_S

    # ---- topics

    def _see_topics(self, step: Step, came: list[dict[str, Any]]) -> None:
        """Wait until the change has reached the group coordinator, and name the new topics."""
        [answer] = came
        rows = next(value for value in answer["response"].values() if isinstance(value, list))
        done = sorted(one["name"] for one in rows if not one["error_code"])
        asked = {one["name"]: one for one in step["request"].get("topics", ())}
        with Topics(self.address) as topics:
            for symbol in done:
                name = self.names.live[symbol]
                if step["api"] == "CreateTopics":
                    self.names.bind_id(symbol, self._in_order(topics, name, asked[symbol]["num_partitions"]))
                else:
                    topics.wait_for({name: asked[symbol]["count"] if symbol in asked else 0})
                row = asked.get(symbol, {})
                wait_until_seen(self._control, self._read, name, row.get("num_partitions", row.get("count", 0)))

    def _in_order(self, topics: Topics, name: str, count: int) -> bytes:
        """The id of a topic, which is created again until it comes after those that the walk has seen."""
        topics.wait_for({name: count})
        for _ in range(CREATIONS):
            topic_id = topics.id_of(name)
            if hashes.is_in_order([*self.names.seen_ids(), topic_id]):
                return topic_id
            topics.delete([name])
            topics.create({name: count})
        raise Inconclusive("no topic id in order")

    # ---- state

    def state(self) -> State:
        fetched = [OffsetFetchRequest.Group(group_id=one, topics=None) for one in self.groups]
        asked: list[tuple[Message, int]] = [
            (ConsumerGroupDescribeRequest(group_ids=self.groups), 1),
            (DescribeGroupsRequest(groups=self.groups), 5),
            (OffsetFetchRequest(groups=fetched, require_stable=False), 8),
        ]
        return seen(*(self._form(self._control.ask(request, version), version) for request, version in asked))

    # ---- records

    def records(self) -> list[Any]:
        """The records of the walk's groups since the last call."""
        out = []
        for partition in self._read:
            while True:
                one = self._fetch(partition)
                found, end = stored.read_log(one.records, self.names)
                out += [record for record in found if record[1] in self._symbols]
                self._read[partition] = max(self._read[partition], end)
                if self._read[partition] >= one.high_watermark or end == -1:
                    break
        return stored.in_runs(out)

    def _fetch(self, partition: int) -> Any:
        asked = FetchRequest.Partition(
            partition=partition, fetch_offset=self._read[partition], partition_max_bytes=1 << 20
        )
        topics = [FetchRequest.Topic(topic=TOPIC, partitions=[asked])]
        answer = self._control.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 11)
        [[one]] = [topic.partitions for topic in answer.responses]
        assert one.error_code == 0, one
        return one

    def _latest(self, partition: int) -> int:
        asked = ListOffsetsRequest.Partition(partition_index=partition, timestamp=LATEST)
        topics = [ListOffsetsRequest.Topic(name=TOPIC, partitions=[asked])]
        answer = self._control.ask(ListOffsetsRequest(topics=topics), 2)
        [[one]] = [topic.partitions for topic in answer.topics]
        assert one.error_code == 0, one
        return int(one.offset)
