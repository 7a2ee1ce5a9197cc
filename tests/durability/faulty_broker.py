"""`python -m tests.durability.faulty_broker FAULT ...`: the broker with a planted fault, which the cycles must catch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from broker import __main__ as program
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.server.exchange import Exchange
from broker.server.flush import Flusher
from broker.storage import OFFSETS_TOPIC, Log, StoredGroups
from broker.storage.segments.producers import Producers
from tests.durability.transactions.faults import FAULTS as TRANSACTION_FAULTS

LATE_S = 0.05


def answer_commits_early() -> None:
    """Answer OffsetCommit immediately and flush it a little later."""
    _release_early(OffsetCommitRequest.API_KEY)


def _release_early(api_key: int) -> None:
    release = Flusher.release

    def release_early(self: Any, exchange: Exchange) -> None:
        if exchange.api_key == api_key:
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


def forget_epochs() -> None:
    """Do not persist how far the members of consumer groups are."""
    append = Log.append_rows
    Log.append_rows = (
        lambda self, topic, rows: append(  # type: ignore[method-assign]
            self, topic, [row for row in rows if topic != OFFSETS_TOPIC or row.key[:2] != b"\0\x08"]
        )
    )


def answer_heartbeats_early() -> None:
    """Answer ConsumerGroupHeartbeat immediately and flush what it changed a little later."""
    _release_early(ConsumerGroupHeartbeatRequest.API_KEY)


def serve_unchecked() -> None:
    """Take every stored batch for good."""
    from broker.storage.segments import verification

    class Anything:
        def __ne__(self, other: object) -> bool:
            return False

    verification._crc = lambda content: Anything()


def skip_damage() -> None:
    """Answer a fetch of damaged records as if there were none."""
    from broker.storage.errors import DamageError
    from broker.storage.segments.partition import SegmentPartition

    read = SegmentPartition.read

    def read_or_nothing(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return read(self, *arguments, **named)
        except DamageError:
            return b""

    SegmentPartition.read = read_or_nothing  # type: ignore[method-assign]


def name_no_file() -> None:
    """Refuse damaged records without a line in the log."""
    from broker.storage.errors import DamageError

    DamageError.__str__ = lambda self: "the data is damaged"  # type: ignore[method-assign]


def keep_losses_secret() -> None:
    """Accept losses and do not list them."""
    from broker.storage.store import evidence

    evidence.logger.disabled = True


def delete_damaged() -> None:
    """Delete the originals of repaired segments."""
    import os

    from broker.storage.segments import leftovers

    def delete(_: object, path: str) -> str:
        os.unlink(path)
        return path

    leftovers.keep_damaged = delete  # type: ignore[assignment]


def forget_ends() -> None:
    """Do not read where the acknowledged bytes of partitions end."""
    from broker.storage.segments.end_checks import CheckedEnds

    CheckedEnds.of = lambda self, partition_id: None  # type: ignore[method-assign]
    CheckedEnds._check_slots = lambda self: None  # type: ignore[method-assign]


def begin_anew() -> None:
    """Take a data directory without a store for a new one."""
    from broker.storage.store.evidence import Evidence

    Evidence.check_new = lambda self, accept_loss: None  # type: ignore[method-assign]


def hold_nothing() -> None:
    """Do not notice that another directory takes the place of the data directory."""
    from broker.directory_lock import Hold
    from broker.storage.open_files import OpenFiles

    Hold.lost = lambda self: None  # type: ignore[method-assign]
    OpenFiles.replaced = lambda self: None  # type: ignore[method-assign]


FAULTS: dict[str, Callable[[], None]] = {
    "stored batches are not checked": serve_unchecked,
    "damage is skipped": skip_damage,
    "damage has no name": name_no_file,
    "losses are not told": keep_losses_secret,
    "damaged files are deleted": delete_damaged,
    "ends are forgotten": forget_ends,
    "a missing store is a new one": begin_anew,
    "a replaced directory is not noticed": hold_nothing,
    "commits are answered before they are durable": answer_commits_early,
    "producers are forgotten": forget_producers,
    "generations are forgotten": forget_generations,
    "epochs are forgotten": forget_epochs,
    "heartbeats are answered before they are durable": answer_heartbeats_early,
    **TRANSACTION_FAULTS,
}


if __name__ == "__main__":
    FAULTS[sys.argv.pop(1)]()
    sys.exit(program.main())
