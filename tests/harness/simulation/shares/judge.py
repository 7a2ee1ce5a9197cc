"""The judge of share groups: it follows each record from its first delivery until it is finished, through all crashes.

- Nothing that was accepted or rejected is delivered again, once the answer was sent.
- No record is acquired while another acquisition of it lasts.
- A delivery count goes up by one with each delivery; a crash takes back only what no answer has confirmed.
- In the end every record was accepted or rejected, or delivered as often as is allowed.
- No member learns an epoch of its group that a crash takes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.cores.share.acknowledgement import ACCEPT, GAP, REJECT, Acknowledgement
from broker.cores.share.acquisition import Acquired, Wanted
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.protocol.share_state import SharePartitionKey
from broker.protocol.wire_types import Message
from broker.server.exchange import Exchange
from tests.harness.simulation.terms import ensure

if TYPE_CHECKING:
    from tests.harness.simulation.shares.world import ShareBroker, ShareWorld

FINISHING = (GAP, ACCEPT, REJECT)


class Place(NamedTuple):
    """A record, for one group."""

    key: SharePartitionKey
    offset: int


class Hold(NamedTuple):
    """An acquisition: whose it is, and until when."""

    member_id: str
    until_ms: int


class ShareJudge:
    def __init__(self, world: ShareWorld) -> None:
        self._world = world
        self._confirmed: dict[Place, None] = {}  # finished, and the answer that says so was sent
        self._floors: dict[Place, int] = {}  # delivery counts of releases whose answers were sent
        self._most: dict[Place, int] = {}  # the highest delivery count of each record
        self._attempted: dict[Place, None] = {}  # whoever finished it; a crash may have undone it
        self._learned: dict[tuple[str, str], int] = {}  # the epoch of each member in any answer sent
        self.deliveries = self.redeliveries = self.expiries = self.finished = self.archived = 0
        self.restarted()

    # ---- the lives of brokers ----------------------------------------------------------------------------------------

    def restarted(self) -> None:
        self._requests: dict[Exchange, Message] = {}
        self._beats: dict[Exchange, tuple[str, str, int]] = {}
        self._outcomes: dict[Exchange, list[tuple[Place, bool, int]]] = {}
        self._current: Exchange | None = None
        self._holds: dict[Place, Hold] = {}
        self._counts: dict[Place, int] = {}  # as this broker must have them
        self._finished = dict(self._confirmed)

    def check(self, broker: ShareBroker) -> None:
        """A broker has started, or the world ends."""
        for (group_id, member_id), epoch in self._learned.items():
            group = broker.core.group(group_id)
            found = group.generation if group is not None else 0
            ensure(found >= epoch, f"{group_id} is in epoch {found}, but {member_id} knows {epoch}")

    def audit(self, broker: ShareBroker) -> None:
        """Nothing to do between the turns: every change is judged."""

    # ---- requests and responses --------------------------------------------------------------------------------------

    def arrived(self, exchange: Exchange, request: Message) -> None:
        self._requests[exchange] = request
        self._current = exchange

    def answered(self, exchange: Exchange, response: Any) -> None:
        request = self._requests.pop(exchange)
        if isinstance(request, ShareGroupHeartbeatRequest) and not response.error_code:
            self._beats[exchange] = request.group_id, request.member_id, response.member_epoch

    def released(self, exchange: Exchange) -> None:
        """What an answer says is durable."""
        beat = self._beats.pop(exchange, None)
        if beat is not None:
            group_id, member_id, epoch = beat
            if epoch > 0:
                before = self._learned.get((group_id, member_id), 0)
                ensure(epoch >= before, f"{member_id} learns epoch {epoch} after {before}")
                self._learned[group_id, member_id] = epoch
        for place, is_finished, count in self._outcomes.pop(exchange, ()):
            if is_finished:
                self._confirmed[place] = None
            else:
                self._floors[place] = max(self._floors.get(place, 0), count)

    # ---- what happens to records -------------------------------------------------------------------------------------

    def acquired(self, key: SharePartitionKey, wanted: Wanted, acquired: Sequence[Acquired]) -> None:
        for first, last, count in acquired:
            for offset in range(first, last + 1):
                self._delivered(Place(key, offset), Hold(wanted.member_id, wanted.deadline_ms), count)

    def _delivered(self, place: Place, hold: Hold, count: int) -> None:
        ensure(place not in self._finished, f"{place} is delivered to {hold.member_id}, but was finished")
        before = self._holds.get(place)
        ensure(before is None, f"{hold.member_id} acquires {place}, which is {before}")
        limit, most = self._world.most_deliveries, self._most.get(place, 0)
        ensure(count <= limit, f"{place} is delivered {count} times")
        if place in self._counts:
            expected = self._counts[place] + 1
            ensure(count == expected, f"delivery {count} of {place} should be number {expected}")
        else:
            low = self._floors.get(place, 0) + 1
            ensure(low <= count <= most + 1, f"delivery {count} of {place} after a crash, not {low} to {most + 1}")
        self._holds[place], self._counts[place] = hold, count
        self._most[place] = max(most, count)
        self.deliveries += 1
        self.redeliveries += count > 1

    def acknowledged(self, key: SharePartitionKey, member_id: str, given: Sequence[Acknowledgement]) -> None:
        """The broker has taken acknowledgements of the request that it executes."""
        assert self._current is not None
        for one in given:
            for offset in range(one.first_offset, one.last_offset + 1):
                kind = one.types[offset - one.first_offset] if len(one.types) > 1 else one.types[0]
                place = Place(key, offset)
                hold = self._holds.pop(place, None)
                if hold is None:
                    # Below the start offset: finished before, or delivered too often.
                    is_finished = place in self._finished or self._is_archived(place)
                    ensure(is_finished, f"{member_id} acknowledges {place}, which is not acquired")
                    continue
                ensure(hold.member_id == member_id, f"{member_id} acknowledges {place} of {hold.member_id}")
                is_finished = kind in FINISHING
                if is_finished:
                    self._finished[place] = self._attempted[place] = None
                    self.finished += 1
                outcome = place, is_finished, self._counts[place]
                self._outcomes.setdefault(self._current, []).append(outcome)

    def expired(self, key: SharePartitionKey, now_ms: int) -> None:
        """The locks that were due then have run out."""
        for place in [place for place, hold in self._holds.items() if place.key == key and hold.until_ms <= now_ms]:
            del self._holds[place]
            self.expiries += 1

    def session_ended(self, key: SharePartitionKey, member_id: str) -> None:
        """The records of the member are available again, and that delivery does not count."""
        for place in [place for place, hold in self._holds.items() if (place.key, hold.member_id) == (key, member_id)]:
            del self._holds[place]
            self._counts[place] -= 1

    def fenced(self, key: SharePartitionKey) -> None:
        """The memory of a partition is gone, as after a restart."""
        for places in (self._holds, self._counts):
            for place in [place for place in places if place.key == key]:
                del places[place]  # type: ignore[attr-defined]

    def check_end(self, key: SharePartitionKey, end_offset: int) -> None:
        for offset in range(end_offset):
            place = Place(key, offset)
            is_archived = self._is_archived(place)
            self.archived += is_archived
            ensure(is_archived or place in self._attempted, f"{place} is skipped")

    def _is_archived(self, place: Place) -> bool:
        return self._most.get(place, 0) >= self._world.most_deliveries
