"""A consumer's fetching on a scripted network: the test is the brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from broker.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kgctl.client.consumer.fetching.fetches import Fetches
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.fetching.positions import CommittedOffsets, Positions
from kgctl.client.consumer.partition_state import PartitionState
from kgctl.client.consumer.reset_strategy import EARLIEST, ResetStrategy
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.model.topic_partition import TopicPartition
from tests.harness.client_script import Request, Script

P0, P1, P2, P3 = (TopicPartition("t", number) for number in range(4))
WALL_MS = 1_700_000_000_000
SESSION = 77


class Fetching:
    """`positions` and `fetches` run in the script's turns. Node 1 leads t-0, node 2 t-1, ... as Script distributes them."""

    def __init__(
        self,
        *assigned: TopicPartition,
        nodes: int = 1,
        options: FetchOptions | None = None,
        reset: ResetStrategy = EARLIEST,
        seek: bool = True,
        committed: CommittedOffsets | None = None,
        **script: Any,
    ) -> None:
        self.script = Script(node_count=nodes, partitions={"t": 4}, **script)
        options = options or FetchOptions()
        self.subscription = SubscriptionState(reset)
        self.replaced: list[tuple[TopicPartition, int]] = []  # positions that were left with their topic
        network = self.script.network
        self.positions = Positions(
            network,
            self.subscription,
            options,
            lambda: WALL_MS,
            None if committed is None else lambda partitions, now_ms: committed,
            replaced=lambda one, offset: self.replaced.append((one, offset)),
        )
        self.fetches = Fetches(network, self.subscription, options)
        self.script.participants += [self.positions, self.fetches]
        if assigned:
            self.assign(*assigned, seek=seek)

    def assign(self, *partitions: TopicPartition, seek: bool = True) -> None:
        self.subscription.assign_from_user(partitions)
        self.script.network.metadata.want_only(self.subscription.metadata_topics)
        if seek:
            for one in partitions:
                if self.state(one).position is None:
                    self.subscription.seek(one, 0)
        self.turn()

    def replace_topic(self) -> bytes:
        """Delete the topic and create it again, with another id. Returns the old id."""
        old, self.script.topic_ids["t"] = self.script.topic_ids["t"], b"another topic id"
        return old

    def turn(self) -> None:
        self.script.turn()

    def sleep(self, ms: int) -> None:
        self.script.sleep(ms)

    def state(self, one: TopicPartition = P0) -> PartitionState:
        return self.subscription.state(one)

    def position(self, one: TopicPartition = P0) -> int | None:
        position = self.state(one).position
        return None if position is None else position.offset

    # --- Fetch ---

    def asked(self) -> list[Request]:
        return self.script.requests(FetchRequest)

    def wanted(self, request: Request | None = None) -> dict[str, int]:
        """What the only request in flight, or a given one, asks for."""
        request = request or self._only(self.asked())
        names = {id: name for name, id in self.script.topic_ids.items()}
        return {
            f"{topic.topic or names[topic.topic_id]}-{row.partition}": row.fetch_offset
            for topic in request.message.topics
            for row in topic.partitions
        }

    def answer(
        self,
        rows: Mapping[TopicPartition, FetchResponse.Partition],
        *,
        request: Request | None = None,
        session: int = SESSION,
        error: int = 0,
        topic_id: bytes | None = None,
        **more: Any,
    ) -> None:
        """Answer the only request in flight, or a given one. `topic_id`: of the topic that was asked for, if it is another now."""
        request = request or self._only(self.asked())
        topics: dict[str, FetchResponse.Topic] = {}
        for one, row in rows.items():
            found = topic_id or self.script.topic_ids.get(one.topic, bytes(16))
            topic = topics.setdefault(one.topic, FetchResponse.Topic(topic=one.topic, topic_id=found, partitions=[]))
            row.partition_index = one.partition
            topic.partitions.append(row)
        response = FetchResponse(error_code=error, session_id=session, responses=list(topics.values()), **more)
        self.script.answer(request, response)
        self.turn()

    def collect(self, count: int = 500) -> list[int]:
        """The offsets that the application gets."""
        taken = [one.offset for one in self.fetches.collect(count)]
        self.turn()
        return taken

    # --- ListOffsets ---

    def lookups(self) -> list[tuple[TopicPartition, int]]:
        """(partition, timestamp) of all ListOffsets in flight."""
        return [
            (TopicPartition(topic.name, row.partition_index), row.timestamp)
            for request in self.script.requests(ListOffsetsRequest)
            for topic in request.message.topics
            for row in topic.partitions
        ]

    def found(
        self, offsets: Mapping[TopicPartition, int], *, error: int = 0, epoch: int = -1, timestamp: int = -1
    ) -> None:
        """Answer the oldest ListOffsets with these offsets; an offset of -1 is none."""
        request = self.script.requests(ListOffsetsRequest)[0]
        topics = [
            ListOffsetsResponse.Topic(
                name=topic.name,
                partitions=[
                    ListOffsetsResponse.Partition(
                        partition_index=row.partition_index,
                        error_code=error,
                        offset=offsets[TopicPartition(topic.name, row.partition_index)] if not error else -1,
                        leader_epoch=epoch,
                        timestamp=timestamp,
                    )
                    for row in topic.partitions
                    if error or TopicPartition(topic.name, row.partition_index) in offsets
                ],
            )
            for topic in request.message.topics
        ]
        self.script.answer(request, ListOffsetsResponse(topics=topics))
        self.turn()

    @staticmethod
    def _only(requests: list[Request]) -> Request:
        (request,) = requests
        return request
