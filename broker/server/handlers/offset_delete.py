"""OffsetDelete of many partitions: the core handles it in parts, each a step of its own, in several turns of the event loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from broker.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocol.wire_types import Message
    from broker.server.exchange import Answerable
    from broker.server.resources import Resources

# Partitions per part.
PART = 500


def delete_offsets(request: OffsetDeleteRequest, exchange: Answerable, resources: Resources) -> None:
    if sum(len(topic.partitions) for topic in request.topics) <= PART:
        resources.groups.load_and_submit(request, exchange, (request.group_id,))
    else:
        _Deletion(request, exchange, resources).resume()


class _Deletion:
    """A deletion in progress. It stands in for the exchange of each part."""

    def __init__(self, request: OffsetDeleteRequest, exchange: Answerable, resources: Resources) -> None:
        self._exchange = exchange
        self._groups = resources.groups
        self._parts = parts(request)
        self._topics: dict[str, OffsetDeleteResponse.Topic] = {}
        self._part: OffsetDeleteRequest
        self._abandoned = False
        self.version, self.client_id, self.connection = exchange.version, exchange.client_id, exchange.connection
        self.answered = False
        self.abandon: Callable[[], None] | None = None
        self.complete: Callable[[Any], Message] | None = None
        exchange.abandon = self._abandon

    def resume(self) -> None:
        """Run the next part."""
        part = next(self._parts, None)
        if self._abandoned:
            return
        if part is None:
            self._exchange.answer(OffsetDeleteResponse(topics=list(self._topics.values())))
        else:
            self._part, self.answered = part, False
            self._groups.load_and_submit(part, self, (part.group_id,))

    def answer(self, response: Message) -> None:
        """Take the answer to the present part."""
        assert isinstance(response, OffsetDeleteResponse)
        self.answered = True
        if response.error_code and not self._topics:
            self._exchange.answer(response)
            return
        if response.error_code:
            # The group has changed since the first part.
            response = _refusal(self._part, response.error_code)
        for topic in response.topics:
            found = self._topics.setdefault(topic.name, topic)
            if found is not topic:
                found.partitions += topic.partitions
        self.connection.soon(self.resume)

    def _abandon(self) -> None:
        self._abandoned = True


def parts(request: OffsetDeleteRequest) -> Iterator[OffsetDeleteRequest]:
    topics: list[OffsetDeleteRequest.Topic] = []
    room = PART
    for topic in request.topics:
        at = 0
        while at < max(len(topic.partitions), 1):
            taken = topic.partitions[at : at + room]
            topics.append(OffsetDeleteRequest.Topic(name=topic.name, partitions=taken))
            at += max(len(taken), 1)
            room -= len(taken)
            if not room:
                yield OffsetDeleteRequest(group_id=request.group_id, topics=topics)
                topics, room = [], PART
    if topics:
        yield OffsetDeleteRequest(group_id=request.group_id, topics=topics)


def _refusal(part: OffsetDeleteRequest, code: int) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponse.Topic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponse.Partition(partition_index=row.partition_index, error_code=code)
                    for row in topic.partitions
                ],
            )
            for topic in part.topics
        ]
    )
