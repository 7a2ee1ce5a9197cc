"""`python -m tests.durability.faulty_broker FAULT ...`: the broker with a planted fault, which the cycles must catch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from broker import __main__ as program
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.server.exchange import Exchange
from broker.server.flush import Flusher
from broker.storage import OFFSETS_TOPIC, Log, StoredGroups
from broker.storage.segments.producers import Producers

LATE_S = 0.05


def answer_commits_early() -> None:
    """Answer OffsetCommit immediately and flush it a little later."""
    release = Flusher.release

    def release_early(self: Any, exchange: Exchange) -> None:
        if exchange.api_key == OffsetCommitRequest.API_KEY:
            exchange.released = True
            exchange.connection.released()
            self.schedule()
        else:
            release(self, exchange)

    def schedule(self: Any) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_later(LATE_S, self.flush)

    Flusher.release = release_early  # type: ignore[method-assign]
    Flusher.schedule = schedule  # type: ignore[method-assign]


def forget_producers() -> None:
    """Lose the state of idempotent producers in a restart."""

    def load(store: object, partition_id: int) -> Producers:
        return Producers()

    def note_nothing(self: Producers, header: object) -> None:
        pass

    Producers.load = load  # type: ignore[method-assign, assignment]
    Producers.note = note_nothing  # type: ignore[method-assign, assignment]


def forget_generations() -> None:
    """Persist neither generations nor generation floors."""
    append = Log.append_rows
    StoredGroups.set_generation_floor = lambda self, group_id, generation: None  # type: ignore[method-assign]
    Log.append_rows = (
        lambda self, topic, rows: append(  # type: ignore[method-assign]
            self, topic, [row for row in rows if topic != OFFSETS_TOPIC or row.key[:2] != b"\0\2"]
        )
    )


FAULTS: dict[str, Callable[[], None]] = {
    "commits are answered before they are durable": answer_commits_early,
    "producers are forgotten": forget_producers,
    "generations are forgotten": forget_generations,
}


if __name__ == "__main__":
    FAULTS[sys.argv.pop(1)]()
    sys.exit(program.main())
