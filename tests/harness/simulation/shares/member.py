"""A member of a share group, as a script: heartbeats, fetches in a session, and acknowledgements of all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.cores.share.acknowledgement import ACCEPT, GAP, REJECT, RELEASE
from broker.cores.share.sessions import FINAL_EPOCH, TopicIdPartition, next_epoch
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from broker.protocol.messages.share_fetch import ShareFetchRequest
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.protocol.record_batch import Record, build_batch
from tests.harness.simulation.clock import MS, SECOND
from tests.harness.simulation.terms import ensure
from tests.harness.simulation.transactions.scripts import Answering, Ask, Lost, Script, Sleep

if TYPE_CHECKING:
    from tests.harness.simulation.shares.world import ShareWorld

TOPIC = "input"
FENCED = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
NO_SESSION = (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH)
# The lock has run out, the record was taken away, or the partition was loaded again.
REFUSALS = (
    ErrorCode.NONE,
    ErrorCode.INVALID_RECORD_STATE,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
KINDS, WEIGHTS = (ACCEPT, RELEASE, REJECT, GAP), (14, 4, 2, 1)


class ShareMember:
    """Each run of the script is a process with a member id of its own."""

    def __init__(self, world: ShareWorld, name: str, group_id: str) -> None:
        self.name = name
        self.group_id = group_id
        self.is_diligent = False  # accepts everything at once, and never goes
        self._world = world

    def be_diligent(self) -> None:
        """And say everything again: a late copy of a heartbeat may have got the answer with the assignment."""
        self.is_diligent = self._says_all = True

    def script(self) -> Script:
        self.member_id, self.epoch, self.assigned = self._world.new_id(), 0, set[TopicIdPartition]()
        self._beat_us, self._says_all = 0, True
        self._lose_session()
        while True:
            try:
                yield from self._turn()
            except Lost:
                self._lose_session()
                yield Sleep(self._world.random.randrange(SECOND))

    def _lose_session(self) -> None:
        self.session, self._asked = 0, set[TopicIdPartition]()
        self._held: dict[TopicIdPartition, list[tuple[int, int]]] = {}

    def _turn(self) -> Answering:
        world = self._world
        if world.clock.us >= self._beat_us:
            yield from self._beat()
        if not self.is_diligent and world.happens(world.faults.abort * 0.1):
            yield from self._leave()
            return
        if self._held and world.happens(0.5):
            yield from self._acknowledge()
        if self.epoch and self.assigned:
            yield from self._fetch()
        slow_us = world.lock_ms * MS * 2 if not self.is_diligent and world.happens(0.05) else 50 * MS
        yield Sleep(world.random.randrange(slow_us))

    def _beat(self) -> Answering:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            subscribed_topic_names=[TOPIC] if self._says_all else None,
        )
        self._says_all, said_all = True, self._says_all  # unless this one is answered
        answer = yield Ask(request, 1)
        self._beat_us = self._world.clock.us + 500 * MS
        if answer.error_code:
            ensure(answer.error_code in FENCED, f"{self.name} receives {ErrorCode(answer.error_code).name}")
            self.epoch, self._beat_us = 0, 0
            return
        # Meanwhile all may have to be said once more.
        self.epoch, self._says_all = answer.member_epoch, self.is_diligent and not said_all
        if answer.assignment is not None:
            self.assigned = {
                TopicIdPartition(row.topic_id, partition)
                for row in answer.assignment.topic_partitions
                for partition in row.partitions
            }

    def _leave(self) -> Answering:
        """Close the session and the membership; later join again, with the same id."""
        if self.session:
            yield Ask(self._request(FINAL_EPOCH, {}, []), 1)
            self._lose_session()
        yield Ask(ShareGroupHeartbeatRequest(group_id=self.group_id, member_id=self.member_id, member_epoch=-1), 1)
        self.epoch, self._beat_us, self._says_all = 0, 0, True
        self.assigned = set()
        yield Sleep(self._world.random.randrange(3 * SECOND))

    def _fetch(self) -> Answering:
        acks = self._acks() if self.session and self._world.happens(0.7) else {}
        request = self._request(self.session, acks, self._asked - self.assigned)
        self._asked = set(self.assigned)
        answer = yield Ask(request, 1)
        if answer.error_code:
            ensure(answer.error_code in NO_SESSION, f"{self.name} receives {ErrorCode(answer.error_code).name}")
            return self._lose_session()
        self.session = next_epoch(self.session)
        for topic in answer.responses:
            for row in topic.partitions:
                ensure(row.acknowledge_error_code in REFUSALS, f"{self.name}: {row.acknowledge_error_code}")
                ensure(not row.error_code, f"{self.name} reads {row.partition_index}: {row.error_code}")
                held = self._held.setdefault(TopicIdPartition(topic.topic_id, row.partition_index), [])
                held += [(one.first_offset, one.last_offset) for one in row.acquired_records]
        return None

    def _acknowledge(self) -> Answering:
        acks = self._acks()
        topics: dict[bytes, list[Any]] = {}
        for (topic_id, index), batches in acks.items():
            rows = [ShareAcknowledgeRequest.AcknowledgementBatch(**batch) for batch in batches]
            row = ShareAcknowledgeRequest.Partition(partition_index=index, acknowledgement_batches=rows)
            topics.setdefault(topic_id, []).append(row)
        request = ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.session,
            topics=[ShareAcknowledgeRequest.Topic(topic_id=one, partitions=rows) for one, rows in topics.items()],
        )
        answer = yield Ask(request, 1)
        if answer.error_code:
            ensure(answer.error_code in NO_SESSION, f"{self.name} receives {ErrorCode(answer.error_code).name}")
            return self._lose_session()
        self.session = next_epoch(self.session)
        for topic in answer.responses:
            for row in topic.partitions:
                ensure(row.error_code in REFUSALS, f"{self.name}: {row.error_code}")
        return None

    def _acks(self) -> dict[TopicIdPartition, list[dict[str, Any]]]:
        """What it makes of the records that it holds; some it forgets, until their locks run out."""
        random, found = self._world.random, dict[TopicIdPartition, list[dict[str, Any]]]()
        for place, held in self._held.items():
            for first, last in sorted(held):
                if not self.is_diligent and random.random() < 0.05:
                    continue
                types = [ACCEPT]
                if not self.is_diligent:
                    types = random.choices(KINDS, WEIGHTS, k=random.choice([1, last - first + 1]))
                batch = {"first_offset": first, "last_offset": last, "acknowledge_types": types}
                found.setdefault(place, []).append(batch)
        self._held = {}
        return found

    def _request(
        self, epoch: int, acks: dict[TopicIdPartition, list[dict[str, Any]]], forgotten: Any
    ) -> ShareFetchRequest:
        random = self._world.random
        named = sorted(acks.keys() | (self.assigned if epoch != FINAL_EPOCH else set()))
        topics: dict[bytes, list[ShareFetchRequest.Partition]] = {}
        for place in named:
            rows = [ShareFetchRequest.AcknowledgementBatch(**batch) for batch in acks.get(place, ())]
            row = ShareFetchRequest.Partition(partition_index=place.partition, acknowledgement_batches=rows)
            topics.setdefault(place.topic_id, []).append(row)
        return ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=epoch,
            max_wait_ms=random.choice([0, 100, 500]),
            min_bytes=1,
            max_bytes=random.choice([300, 1 << 20]),
            max_records=random.choice([1, 5, 500]),
            batch_size=random.choice([1, 3, 500]),
            topics=[ShareFetchRequest.Topic(topic_id=one, partitions=rows) for one, rows in topics.items()],
            forgotten_topics_data=[
                ShareFetchRequest.ForgottenTopic(topic_id=one.topic_id, partitions=[one.partition])
                for one in sorted(forgotten)
            ],
        )


class Producer:
    """Appends batches of a few records, as long as faults happen."""

    name = "producer"

    def __init__(self, world: ShareWorld) -> None:
        self._world = world

    def script(self) -> Script:
        world, random = self._world, self._world.random
        while world.is_producing:
            records = [Record(number, 0, None, b"x" * random.randrange(40)) for number in range(random.randrange(1, 6))]
            row = ProduceRequest.Partition(
                index=random.randrange(world.inputs), records=build_batch(records, base_offset=0)
            )
            request = ProduceRequest(
                acks=-1, timeout_ms=1000, topic_data=[ProduceRequest.Topic(name=TOPIC, partition_data=[row])]
            )
            try:
                yield Ask(request, 9)
            except Lost:
                yield Sleep(100 * MS)
            yield Sleep(random.randrange(world.reading_us))
