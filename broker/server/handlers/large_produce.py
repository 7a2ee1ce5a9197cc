"""Produce to many partitions: in parts, in several turns of the event loop. The first batch of a partition creates files.

Each part is a request of its own, so a transaction that ends meanwhile takes no batch of a later part.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from broker.protocol.messages.produce import ProduceRequest, ProduceResponse

# Partitions per part.
PART = 5


def in_parts(
    request: ProduceRequest, run: Callable[[ProduceRequest], ProduceResponse]
) -> Generator[None, None, ProduceResponse]:
    """Run a request part by part; return the whole answer."""
    answers = [
        ProduceResponse.Topic(name=asked.name, topic_id=asked.topic_id, partition_responses=[])
        for asked in request.topic_data
    ]
    for places, topics in _parts(request):
        request.topic_data = topics
        for place, answered in zip(places, run(request).responses, strict=True):
            answers[place].partition_responses += answered.partition_responses
        yield
    return ProduceResponse(responses=answers)


def _parts(request: ProduceRequest) -> Iterator[tuple[list[int], list[ProduceRequest.Topic]]]:
    """The topics of each part, with their places in the request."""
    places: list[int] = []
    topics: list[ProduceRequest.Topic] = []
    room = PART
    for place, asked in enumerate(request.topic_data):
        at = 0
        while at < len(asked.partition_data):
            taken = asked.partition_data[at : at + room]
            at += len(taken)
            room -= len(taken)
            places.append(place)
            topics.append(ProduceRequest.Topic(name=asked.name, topic_id=asked.topic_id, partition_data=taken))
            if not room:
                yield places, topics
                places, topics, room = [], [], PART
    if topics:
        yield places, topics
