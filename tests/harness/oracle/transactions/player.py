"""The clients of one walk on a running broker, and what is seen of transactions, partitions and groups after each step."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.describe_producers import DescribeProducersRequest
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.list_offsets import ListOffsetsRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.wire_types import Message
from tests.harness.oracle.transactions import forms, history
from tests.harness.oracle.transactions.names import Names
from tests.harness.wire_client import ConnectionClosed, WireClient

Address = tuple[str, int]
Step = dict[str, Any]
State = dict[str, Any]
Place = tuple[str, int]  # topic, partition

PASSING = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")
PASSED_WITHIN_S = 10.0
# Answers of a coordinator that is about to load; ask again.
NOT_READY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
CLOSED = "closed"
RESTART, WAIT, HISTORY = "Restart", "Wait", "History"
AT_ONCE = 500
# Part of a short timeout after which a step may meet the abort, so that the walk says nothing.
IN_TIME = 0.75


class Inconclusive(Exception):
    """The walk cannot be compared; the text says why."""


class Player:
    """Plays steps one at a time. `restart` restarts the broker; without it a walk with restarts cannot be played alone."""

    def __init__(self, address: Address, walk: dict[str, Any]) -> None:
        self.address = address
        self.topics: dict[str, int] = walk["topics"]
        self.groups: list[str] = walk["groups"]
        self.transactional_ids: list[str] = walk["transactional_ids"]
        self.names = Names(self.topics, self.groups, self.transactional_ids)
        self.deleted: set[str] = set()
        self._clients: dict[str, WireClient] = {}
        self._log_start: dict[tuple[str, int], int] = {}
        self._short: dict[str, tuple[float, float]] = {}  # transactional id -> (begun at, timeout), if that is short
        self._create_topics()
        for name, epoch in walk["epochs"].items():
            self._use_up(name, epoch)

    def close(self) -> None:
        left = [self.names.live[one] for one in self.topics if one not in self.deleted]
        if left:
            self.ask(DeleteTopicsRequest(topic_names=left, timeout_ms=10_000), 5)
        self.disconnect()

    def disconnect(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def ask(self, message: Message, version: int, client: str = "control") -> Any:
        return self._client(client).ask(message, version)

    def _client(self, name: str) -> WireClient:
        if name not in self._clients:
            self._clients[name] = WireClient(self.address, client_id=name)
        return self._clients[name]

    def play(self, step: Step) -> Any:
        """The response to the request of a step, in the recorded form; None for a step without a request."""
        if step["api"] == WAIT:
            return None
        if step["api"] == HISTORY:
            return {name: history.read(self._client("control"), name, self.names) for name in self.transactional_ids}
        api = forms.BY_NAME[step["api"]]
        before = time.monotonic()
        request = forms.build(api.request, self.names.living(step["request"]), self.names)
        while True:
            try:
                message = self.ask(request, step["version"], step["client"])
            except ConnectionClosed:
                self._clients.pop(step["client"]).close()
                return CLOSED
            response = forms.recorded(forms.of_walk(message, self.names), step["version"], self.names)
            if not forms.codes(response) & set(NOT_READY):
                break
            if time.monotonic() - before > PASSED_WITHIN_S:
                raise Inconclusive("the coordinator does not load")
            time.sleep(0.01)
        if step["api"] == "DeleteTopics":
            self.deleted |= {one["name"] for one in response["responses"] if one["error_code"] == 0}
        return response

    # ---- state

    def settled(self, until: Callable[[State], bool] = lambda _: True) -> State:
        """The state when no transaction is being completed and `until` holds."""
        deadline = time.monotonic() + PASSED_WITHIN_S
        while True:
            state = self.seen()
            is_passing = any(
                isinstance(state[name], list) and state[name][0] in PASSING for name in self.transactional_ids
            )
            if not is_passing and until(state):
                return state
            if time.monotonic() > deadline:
                if is_passing:
                    raise Inconclusive("a transaction does not complete")
                return state
            time.sleep(0.002)

    def seen(self) -> State:
        """What transactions, partitions and groups look like now, in this order."""
        asked = self._questions()
        client = self._client("control")
        for message, version in asked:
            client.send(message, version)
        answers = [forms.recorded(client.receive(), version, self.names) for _, version in asked]
        transactions, producers, *fetched, groups, committed, stable = answers
        return {
            **described_transactions(transactions),
            **self._partitions(producers, self._read_again(fetched)),
            **self._offsets(groups, committed, stable),
        }

    def _questions(self) -> list[tuple[Message, int]]:
        live = self.names.live
        groups = [live[one] for one in self.groups]
        producers = [
            DescribeProducersRequest.Topic(name=live[topic], partition_indexes=list(range(count)))
            for topic, count in self.topics.items()
        ]
        offsets = [
            OffsetFetchRequest.Topic(name=live[topic], partition_indexes=list(range(count)))
            for topic, count in self.topics.items()
        ]
        fetches = [OffsetFetchRequest.Group(group_id=group, topics=offsets) for group in groups]
        return [
            (DescribeTransactionsRequest(transactional_ids=[live[one] for one in self.transactional_ids]), 0),
            (DescribeProducersRequest(topics=producers), 0),
            # One by one: a broker may leave out all but the first partition when it is short of time.
            *[(self._fetch((topic, one)), 11) for topic, count in self.topics.items() for one in range(count)],
            (DescribeGroupsRequest(groups=groups), 5),
            (OffsetFetchRequest(groups=fetches, require_stable=False), 8),
            (OffsetFetchRequest(groups=fetches, require_stable=True), 8),
        ]

    def _fetch(self, place: Place) -> FetchRequest:
        """Read from the log start with read_committed."""
        topic, partition = place
        asked = FetchRequest.Partition(
            partition=partition, fetch_offset=self._log_start.get(place, 0), partition_max_bytes=1 << 20
        )
        topics = [FetchRequest.Topic(topic=self.names.live[topic], partitions=[asked])]
        return FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=1, topics=topics)

    def _read_again(self, fetched: list[Any]) -> dict[Place, dict[str, Any]]:
        """The partitions of these answers; those with another log start are fetched again."""
        out: dict[Place, dict[str, Any]] = {}
        for answer in fetched:
            (topic,) = answer["responses"]
            (one,) = topic["partitions"]
            place = topic["topic"], one["partition_index"]
            while one["error_code"] == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._log_start[place] = self._earliest(*place)
                answer = forms.recorded(self.ask(self._fetch(place), 11), 11, self.names)
                ((one,),) = [again["partitions"] for again in answer["responses"]]
            out[place] = one
        return out

    def _earliest(self, topic: str, partition: int) -> int:
        asked = ListOffsetsRequest.Partition(partition_index=partition, timestamp=-2)
        named = ListOffsetsRequest.Topic(name=self.names.live[topic], partitions=[asked])
        answer = self.ask(ListOffsetsRequest(topics=[named]), 2)
        return int(answer.topics[0].partitions[0].offset)

    def _partitions(self, described: Any, fetched: dict[Place, dict[str, Any]]) -> State:
        """High watermark, last stable offset, log start, aborted transactions and producers; or an error."""
        producers = {
            (topic["name"], one["partition_index"]): forms.in_order(
                [_producer(found) for found in one["active_producers"]]
            )
            for topic in described["topics"]
            for one in topic["partitions"]
        }
        return {
            f"{topic}-{partition}": one["error_code"]
            or [
                one["high_watermark"],
                one["last_stable_offset"],
                one["log_start_offset"],
                [[found["producer_id"], found["first_offset"]] for found in one["aborted_transactions"] or []],
                producers[topic, partition],
            ]
            for (topic, partition), one in sorted(fetched.items())
        }

    def _offsets(self, described: Any, committed: Any, stable: Any) -> State:
        """State, committed offsets with metadata, and partitions with pending offsets."""
        states = {one["group_id"]: one["group_state"] for one in described["groups"]}
        found = {
            name: {group["group_id"]: group["topics"] for group in one["groups"]}
            for name, one in (("all", committed), ("stable", stable))
        }
        return {
            group: [
                states[group],
                {
                    f"{topic['name']}-{one['partition_index']}": [one["committed_offset"], one["metadata"]]
                    for topic in found["all"][group]
                    for one in topic["partitions"]
                    if one["committed_offset"] >= 0
                },
                [
                    f"{topic['name']}-{one['partition_index']}"
                    for topic in found["stable"][group]
                    for one in topic["partitions"]
                    if one["error_code"]
                ],
            ]
            for group in self.groups
        }

    # ---- time

    def watch_deadlines(self, before: float, state: State, walk_timeouts: dict[str, int]) -> None:
        """Raise Inconclusive if a transaction with a short timeout may time out by itself before the walk waits for it."""
        for name in self.transactional_ids:
            is_ongoing = isinstance(state[name], list) and state[name][0] == "Ongoing"
            if not is_ongoing or name not in walk_timeouts:
                self._short.pop(name, None)
                continue
            begun, timeout_s = self._short.setdefault(name, (before, walk_timeouts[name] / 1000))
            if time.monotonic() - begun > timeout_s * IN_TIME:
                raise Inconclusive("the machine is too slow for a short timeout")

    # ---- epochs

    def _use_up(self, name: str, epoch: int) -> None:
        """Initialize a producer until it has this epoch."""
        client = self._client("control")
        request = InitProducerIdRequest(transactional_id=self.names.live[name], transaction_timeout_ms=600_000)
        while client.ask(request, 2).error_code in NOT_READY:
            time.sleep(0.01)
        for begun in range(0, epoch, AT_ONCE):
            count = min(AT_ONCE, epoch - begun)
            for _ in range(count):
                client.send(request, 2)
            answers = [client.receive() for _ in range(count)]
            assert answers[-1].producer_epoch == begun + count, answers[-1]

    # ---- topics

    def _create_topics(self) -> None:
        topics = [
            CreateTopicsRequest.Topic(name=self.names.live[topic], num_partitions=count, replication_factor=1)
            for topic, count in self.topics.items()
        ]
        answer = self.ask(CreateTopicsRequest(topics=topics), 7)
        for one in answer.topics:
            assert one.error_code == 0, one
            self.names.bind(f"{self.names.symbol[one.name]}.id", one.topic_id)
        deadline = time.monotonic() + PASSED_WITHIN_S
        while any(
            isinstance(self.seen()[f"{topic}-{one}"], int)
            for topic, count in self.topics.items()
            for one in range(count)
        ):
            assert time.monotonic() < deadline, "the topics do not appear"
            time.sleep(0.005)


def described_transactions(described: Any) -> State:
    """State, producer id, epoch, timeout, whether it has a start time, and partitions; or an error."""
    return {
        one["transactional_id"]: one["error_code"]
        or [
            one["transaction_state"],
            one["producer_id"],
            one["producer_epoch"],
            one["transaction_timeout_ms"],
            one["transaction_start_time_ms"] != -1,
            sorted(f"{topic['topic']}-{partition}" for topic in one["topics"] for partition in topic["partitions"]),
        ]
        for one in described["transaction_states"]
    }


def _producer(found: dict[str, Any]) -> list[Any]:
    """Id, epoch, last sequence, coordinator epoch and start of the open transaction."""
    return [
        found["producer_id"],
        found["producer_epoch"],
        found["last_sequence"],
        found["coordinator_epoch"],
        found["current_txn_start_offset"],
    ]
