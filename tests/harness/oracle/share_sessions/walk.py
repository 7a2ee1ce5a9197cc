"""Random walks through ShareFetch and ShareAcknowledge (KIP-932) on any broker, and what it answered, line by line.

A seed decides what clients do, and so do the answers: members acknowledge what they have acquired, mostly. Sometimes they repeat or invent
epochs and offsets, name partitions that do not exist, close sessions, or disconnect. Partitions have names such as a-0 for their ids.

Lines of Kafka depend on what it does at the same time, so walks avoid that: no acknowledgement that comes with a fetch releases records that
the fetch could get, and `max.records` limits a fetch only if it reads one partition.
"""

from __future__ import annotations

import base64
import random
import secrets
import struct
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.harness.requests import create_topic, produce
from tests.harness.running import until
from tests.harness.share_member import ACCEPT, CLOSE, GAP, REJECT, RELEASE, Acks, Place, ShareMember
from tests.harness.transactions import TransactionalProducer
from tests.harness.wire_client import WireClient

NOWHERE = bytes(15) + b"\x09"
PARTITIONS = 2
# Long enough for Kafka to load a share partition; a fetch that finds nothing takes as long.
KAFKA_WAIT_MS = 150
# Kafka releases the records of a session that has ended after its answer.
KAFKA_SETTLE_S = 0.1
NONE = ErrorCode.NONE
_ERRORS = {int(code): code.name for code in ErrorCode}


class _Held(NamedTuple):
    """Records that a member has acquired."""

    place: Place
    first: int
    last: int


class _Member:
    def __init__(self, name: str, member: ShareMember) -> None:
        self.name = name
        self.member = member
        self.held: list[_Held] = []
        self.knows: set[Place] = set()


class Walk:
    def __init__(self, address: tuple[str, int], seed: int, *, is_kafka: bool) -> None:
        tag = secrets.token_hex(3)
        self.lines: list[str] = []
        self._wait_ms = KAFKA_WAIT_MS if is_kafka else 0
        self._settle_s = KAFKA_SETTLE_S if is_kafka else 0
        self._address = address
        self._random = random.Random(seed)
        self._client = WireClient(address)
        self._group = f"walk-{tag}-{seed}"
        self._topics = [f"{name}-{tag}-{seed}" for name in "ab"]
        self._ids = [create_topic(self._client, name, PARTITIONS).topic_id for name in self._topics]
        self._committed = self._random.random() < 0.5
        self._configure()
        self._join()
        # As long as it has a session, Kafka keeps the partitions loaded. It reads nothing.
        self._keeper = self._new_member(99)
        self._keeper.member.add(*self._places())
        self._keeper.member.fetch(max_wait_ms=self._wait_ms)
        self._members = [self._new_member(number) for number in range(self._random.choice((1, 2, 3)))]
        self._producer: TransactionalProducer | None = None

    def _configure(self) -> None:
        values = {
            "share.auto.offset.reset": "earliest",
            "share.isolation.level": "read_committed" if self._committed else "read_uncommitted",
        }
        rows = [
            IncrementalAlterConfigsRequest.Config(name=name, config_operation=0, value=values[name]) for name in values
        ]
        resource = IncrementalAlterConfigsRequest.Resource(resource_type=32, resource_name=self._group, configs=rows)
        (row,) = self._client.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses
        assert row.error_code == NONE, row.error_message

    def _join(self) -> None:
        """Give all partitions state: a member subscribes to the topics."""
        epoch = 0

        def has_all() -> bool:
            nonlocal epoch
            request = ShareGroupHeartbeatRequest(
                group_id=self._group,
                member_id="subscriber",
                member_epoch=epoch,
                subscribed_topic_names=self._topics,
            )
            answer = self._client.ask(request)
            assert answer.error_code in (NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR), answer
            if answer.error_code:
                return False
            epoch = answer.member_epoch
            rows = answer.assignment.topic_partitions if answer.assignment is not None else ()
            return sum(len(row.partitions) for row in rows) == PARTITIONS * len(self._topics)

        until(has_all)

    def _new_member(self, number: int) -> _Member:
        # Kafka reads member ids as UUIDs.
        member_id = base64.urlsafe_b64encode(bytes(15) + bytes([number + 1])).decode().rstrip("=")
        return _Member(f"m{number}", ShareMember(WireClient(self._address), self._group, member_id))

    def run(self, steps: int) -> list[str]:
        """The answers to so many moves."""
        moves = [
            *([self._fetch] * 10),
            *([self._acknowledge] * 6),
            *([self._produce] * 5),
            self._fetch_wrongly,
            self._acknowledge_wrongly,
            self._close,
            self._disconnect,
            self._transaction,
            self._describe,
            self._describe,
        ]
        self._produce()
        while len(self.lines) < steps:
            self._random.choice(moves)()
        self._describe()
        for one in [*self._members, self._keeper]:
            one.member.client.close()
        self._client.close()
        return self.lines

    # ---- moves

    def _produce(self) -> None:
        topic, index = self._random.choice(self._topics), self._random.randrange(PARTITIONS)
        values = [b"v"] * self._random.choice((1, 1, 2, 5, 20))
        until(lambda: produce(self._client, topic, *values, partition=index).error_code == NONE)
        self._note(f"produce {topic[0]}-{index} {len(values)}")

    def _transaction(self) -> None:
        if self._producer is None:
            # A Kafka creates its topic of transactions for whoever asks for a coordinator.
            self._client.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[self._group]))
            self._producer = TransactionalProducer(self._client, self._group)
        producer = self._producer
        topic, index = self._random.choice(self._topics), self._random.randrange(PARTITIONS)
        committed = self._random.random() < 0.5
        count = self._random.choice((1, 3))
        values = [b"t"] * count
        until(lambda: producer.produce(topic, *values, partition=index).error_code == NONE)
        assert producer.end(committed=committed) == NONE
        done = "CompleteCommit" if committed else "CompleteAbort"
        until(lambda: producer.state() == done)
        self._note(f"transaction {topic[0]}-{index} {count} {'committed' if committed else 'aborted'}")

    def _fetch(self) -> None:
        one, chance = self._random.choice(self._members), self._random.random
        for place in self._places():
            if place not in one.knows and (chance() < 0.5 or not one.knows):
                one.member.add(place)
                one.knows.add(place)
        forget = [place for place in sorted(one.knows, key=self._name) if chance() < 0.05]
        acks = self._acks(one, [ACCEPT, ACCEPT, REJECT, GAP]) if one.member.epoch and chance() < 0.4 else {}
        self._send_fetch(
            one,
            acks=acks,
            forget=forget,
            # Of several partitions, Kafka serves those first that it has read before.
            max_records=self._random.choice((1, 3, 10, 500)) if len(one.knows) == 1 else 500,
            batch_size=self._random.choice((1, 4, 500)),
        )
        one.knows.difference_update(forget)

    def _acknowledge(self) -> None:
        holders = [each for each in self._members if each.held]
        if holders:
            one = self._random.choice(holders)
            self._send_acknowledge(one, self._acks(one, [ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP]))

    def _fetch_wrongly(self) -> None:
        one = self._random.choice(self._members)
        match self._random.randrange(4):
            case 0:
                # It opens a session in the place of the one that it has.
                one.member.epoch = 0
                one.knows.clear()
            case 1:
                self._send_fetch(one, epoch=one.member.epoch + self._random.choice((1, 7)))
            case 2:
                one.member.add((self._ids[0], PARTITIONS + 3))
                self._send_fetch(one)
            case 3:
                self._send_fetch(one, epoch=0, acks={(self._ids[0], 0): [(0, 0, [ACCEPT])]})

    def _acknowledge_wrongly(self) -> None:
        one, place = self._random.choice(self._members), self._random.choice(self._places())
        first = self._random.randrange(40)
        match self._random.randrange(7):
            case 0:
                self._send_acknowledge(one, {place: [(first, first + self._random.randrange(6), [ACCEPT])]})
            case 1:
                self._send_acknowledge(one, {place: [(first + 1, first, [ACCEPT])]})
            case 2:
                self._send_acknowledge(one, {place: [(first, first + 2, [ACCEPT, ACCEPT])], self._places()[0]: []})
            case 3:
                self._send_acknowledge(one, {(NOWHERE, 0): [(first, first, [ACCEPT])]})
            case 4:
                self._send_acknowledge(one, {place: [(first, first, [7])], (self._ids[1], 9): [(0, 0, [REJECT])]})
            case 5:
                self._send_acknowledge(one, {place: [(first, first, [ACCEPT])]}, epoch=self._random.choice((0, 99)))
            case 6:
                others = [each for each in self._members if each is not one and each.held]
                if others:
                    held = min(self._random.choice(others).held, key=self._order)
                    self._send_acknowledge(one, {held.place: [(held.first, held.last, [ACCEPT])]})

    def _close(self) -> None:
        one = self._random.choice(self._members)
        if self._shares_a_batch(one):
            return
        acks = self._acks(one, [ACCEPT, RELEASE, REJECT]) if self._random.random() < 0.5 else {}
        if self._random.random() < 0.5:
            self._send_fetch(one, acks=acks, epoch=CLOSE)
        else:
            self._send_acknowledge(one, acks, epoch=CLOSE)
        self._ended(one)

    def _disconnect(self) -> None:
        one = self._random.choice(self._members)
        if self._shares_a_batch(one):
            return
        one.member.client.close()
        one.member.client = WireClient(self._address)
        epoch = 12345

        def is_gone() -> bool:
            return one.member.acknowledge({}, epoch=epoch) == {(b"", -1): ErrorCode.SHARE_SESSION_NOT_FOUND}

        until(is_gone)
        self._note(f"{one.name} disconnects")
        self._ended(one)

    def _shares_a_batch(self, one: _Member) -> bool:
        """Perhaps others have records of the same batch. Kafka 4.1 releases none of those behind them."""
        places = {held.place for held in one.held}
        return any(held.place in places for other in self._members if other is not one for held in other.held)

    def _ended(self, one: _Member) -> None:
        """Its records are released, which Kafka does after its answer."""
        one.member.epoch = 0
        one.knows.clear()
        one.held.clear()
        time.sleep(self._settle_s)

    def _describe(self) -> None:
        topics = [
            DescribeShareGroupOffsetsRequest.Topic(topic_name=name, partitions=[*range(PARTITIONS)])
            for name in self._topics
        ]
        group = DescribeShareGroupOffsetsRequest.Group(group_id=self._group, topics=topics)
        (row,) = self._client.ask(DescribeShareGroupOffsetsRequest(groups=[group])).groups
        found = {
            f"{topic.topic_name[0]}-{part.partition_index}": (part.start_offset, part.error_code)
            for topic in row.topics
            for part in topic.partitions
        }
        self._note(f"offsets {row.error_code} {sorted(found.items())}")

    # ---- requests

    def _places(self) -> list[Place]:
        return [(topic_id, index) for topic_id in self._ids for index in range(PARTITIONS)]

    def _acks(self, one: _Member, kinds: Sequence[int]) -> dict[Place, Acks]:
        """Acknowledge some of what it has acquired, in order."""
        chosen: dict[Place, list[tuple[int, int, Sequence[int]]]] = {}
        rest: list[_Held] = []
        for held in sorted(one.held, key=self._order):
            count = held.last - held.first + 1
            match self._random.randrange(5):
                case 0:
                    rest.append(held)
                    continue
                case 1 if count > 1:
                    middle = held.first + self._random.randrange(count - 1)
                    chosen.setdefault(held.place, []).append((held.first, middle, [self._random.choice(kinds)]))
                    rest.append(held._replace(first=middle + 1))
                    continue
                case 2 if count > 1:
                    types = [self._random.choice(kinds) for _ in range(count)]
                case _:
                    types = [self._random.choice(kinds)]
            chosen.setdefault(held.place, []).append((held.first, held.last, types))
        one.held = rest
        return dict(chosen)

    def _send_fetch(self, one: _Member, **arguments: Any) -> None:
        member = one.member
        request = member.new_request(max_wait_ms=self._wait_ms, **arguments)
        answer = member.client.ask(request)
        what = f"{one.name} fetch {request.share_session_epoch} {self._shown(request)}"
        if answer.error_code:
            self._note(f"{what}: {_ERRORS[answer.error_code]}")
            return
        if request.share_session_epoch != CLOSE:
            member.epoch = request.share_session_epoch + 1
        rows = {}
        for topic in answer.responses:
            for row in topic.partitions:
                acquired = [(each.first_offset, each.last_offset, each.delivery_count) for each in row.acquired_records]
                offsets = _base_offsets(bytes(row.records or b""))
                if row.error_code or acquired or (topic.topic_id, row.partition_index) in (arguments.get("acks") or {}):
                    # While Kafka loads a partition, it says nothing of it.
                    name = self._name((topic.topic_id, row.partition_index))
                    rows[name] = row.error_code, row.acknowledge_error_code, acquired, offsets
                one.held += [_Held((topic.topic_id, row.partition_index), first, last) for first, last, _ in acquired]
        self._note(f"{what}: {sorted(rows.items())}")

    def _send_acknowledge(self, one: _Member, acks: dict[Place, Acks], *, epoch: int | None = None) -> None:
        shown = {self._name(place): list(batches_) for place, batches_ in acks.items()}
        epoch_before = one.member.epoch
        found = one.member.acknowledge(acks, epoch=epoch)
        rows = sorted((self._name(place), _ERRORS[code]) for place, code in found.items())
        self._note(f"{one.name} acknowledge {epoch_before if epoch is None else epoch} {shown}: {rows}")

    def _shown(self, request: Any) -> str:
        asked = {
            self._name((topic.topic_id, part.partition_index)): [
                (batch.first_offset, batch.last_offset, batch.acknowledge_types)
                for batch in part.acknowledgement_batches
            ]
            for topic in request.topics
            for part in topic.partitions
        }
        forgotten = [
            self._name((topic.topic_id, index)) for topic in request.forgotten_topics_data for index in topic.partitions
        ]
        return f"{asked} forget={forgotten} records={request.max_records} batch={request.batch_size}"

    def _order(self, held: _Held) -> tuple[str, int]:
        """Kafka orders the partitions of an answer by hash tables."""
        return self._name(held.place), held.first

    def _name(self, place: Place) -> str:
        topic_id, index = place
        if topic_id in self._ids:
            return f"{'ab'[self._ids.index(topic_id)]}-{index}"
        return f"?-{index}"

    def _note(self, line: str) -> None:
        self.lines.append(line)


def _base_offsets(records: bytes) -> list[int]:
    """The batches that are whole: Kafka sends what it has read up to its limit."""
    found, position = [], 0
    while position + 12 <= len(records):
        base_offset, size = struct.unpack_from(">qi", records, position)
        position += 12 + size
        if position <= len(records):
            found.append(base_offset)
    return found
