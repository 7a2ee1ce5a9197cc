"""The durable state of a share partition: batches of offsets with their delivery state, and how two states combine."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from broker.light_named_tuples import NamedTuple

NO_START_OFFSET = -1


class StateBatch(NamedTuple):
    """The offsets from `first_offset` to `last_offset` have this state, and have been delivered so often.

    States as Kafka stores them: 0 available, 2 acknowledged, 4 archived. Acquired (1) is never stored: after a crash, the records are
    available.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def combine(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """The batches without overlaps, in order, and without what is below the start offset, if there is one.

    Where batches overlap, the one that was delivered more often wins, then the higher state: counts and states only grow. Adjacent batches
    that are alike become one. Source: Kafka's PersisterStateBatchCombiner, which leaves some of the latter apart.
    """
    waiting = sorted(
        batch._replace(first_offset=max(batch.first_offset, start_offset))
        for batch in batches
        if batch.last_offset >= start_offset
    )
    waiting.reverse()
    combined: list[StateBatch] = []
    covering: list[tuple[int, int, int]] = []  # a heap, the winner first: what may cover `position`
    position = 0
    while waiting or covering:
        if not covering:
            position = waiting[-1].first_offset
        while waiting and waiting[-1].first_offset <= position:
            batch = waiting.pop()
            heappush(covering, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))
        count, state, last = covering[0]
        if last < position:
            heappop(covering)
            continue
        end = min(last, waiting[-1].first_offset - 1) if waiting else last
        _append(combined, StateBatch(position, end, -state, -count))
        position = end + 1
    return combined


def _append(combined: list[StateBatch], batch: StateBatch) -> None:
    if combined and combined[-1].last_offset + 1 == batch.first_offset and combined[-1][2:] == batch[2:]:
        batch = batch._replace(first_offset=combined.pop().first_offset)
    combined.append(batch)
