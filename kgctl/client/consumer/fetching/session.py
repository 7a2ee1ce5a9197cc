"""A fetch session with one broker (KIP-227): after a full request, only changes of partitions are sent. Kafka's FetchSessionHandler."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from broker.protocol.wire_types import ZERO_UUID
from kgctl.model.topic_partition import TopicPartition

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
_MAX_EPOCH = 2**31 - 1
# Later versions name topics by id only.
MAX_VERSION_BY_NAME = 12


class Wanted(NamedTuple):
    """What to fetch of one partition. A topic without an id has ZERO_UUID."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a session. Exactly the partitions of `session` may be in the answer."""

    session_id: int
    epoch: int
    to_send: Mapping[TopicPartition, Wanted]
    to_forget: Collection[tuple[TopicPartition, bytes]]
    session: Mapping[TopicPartition, Wanted]
    by_id: bool

    @property
    def is_full(self) -> bool:
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)

    @property
    def max_version(self) -> int:
        return max(FetchRequest.VERSIONS) if self.by_id else MAX_VERSION_BY_NAME

    def topics(self) -> list[FetchRequest.Topic]:
        """Neighbours of one topic share an entry; the order stays, because brokers fill their answers in this order."""
        out: list[FetchRequest.Topic] = []
        for one, wanted in self.to_send.items():
            if not out or out[-1].topic != one.topic or out[-1].topic_id != wanted.topic_id:
                out.append(FetchRequest.Topic(topic=one.topic, topic_id=wanted.topic_id, partitions=[]))
            out[-1].partitions.append(
                FetchRequest.Partition(
                    partition=one.partition,
                    current_leader_epoch=wanted.leader_epoch,
                    fetch_offset=wanted.offset,
                    partition_max_bytes=wanted.max_bytes,
                )
            )
        return out

    def forgotten(self) -> list[FetchRequest.ForgottenTopic]:
        topics: dict[tuple[str, bytes], FetchRequest.ForgottenTopic] = {}
        for one, topic_id in self.to_forget:
            topic = topics.setdefault(
                (one.topic, topic_id), FetchRequest.ForgottenTopic(topic=one.topic, topic_id=topic_id, partitions=[])
            )
            topic.partitions.append(one.partition)
        return list(topics.values())


Rows = list[tuple[TopicPartition, FetchResponse.Partition]]


class FetchSession:
    """One request at a time: `ask`, then `answered` or `failed`."""

    def __init__(self) -> None:
        self.session_id, self.epoch = NO_SESSION, INITIAL_EPOCH
        self._partitions: dict[TopicPartition, Wanted] = {}
        self._names: dict[bytes, str] = {}

    @property
    def partitions(self) -> Collection[TopicPartition]:
        return self._partitions.keys()

    def ask(self, wanted: Mapping[TopicPartition, Wanted]) -> Asked:
        """The next request, for exactly these partitions."""
        by_id = all(one.topic_id != ZERO_UUID for one in wanted.values())
        if self.epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._partitions = dict(wanted)
            self._remember_names(by_id)
            return Asked(self.session_id, self.epoch, self._partitions, (), self._partitions, by_id)
        to_send: dict[TopicPartition, Wanted] = {}
        to_forget: list[tuple[TopicPartition, bytes]] = []
        replaced: list[tuple[TopicPartition, bytes]] = []
        kept: dict[TopicPartition, Wanted] = {}
        for one, before in self._partitions.items():
            now = wanted.get(one)
            if now is None:
                to_forget.append((one, before.topic_id))
                by_id = by_id and before.topic_id != ZERO_UUID
            elif now == before:
                kept[one] = now
            else:
                if now.topic_id != before.topic_id and ZERO_UUID not in (before.topic_id, now.topic_id):
                    replaced.append((one, before.topic_id))  # the topic was deleted and created again
                to_send[one] = now
        for one, now in wanted.items():
            if one not in self._partitions:
                to_send[one] = now
        # What is sent goes to the end, as in the broker's copy of the session.
        self._partitions = kept | to_send
        self._remember_names(by_id)
        if by_id:
            to_forget += replaced
        return Asked(self.session_id, self.epoch, to_send, to_forget, self._partitions, by_id)

    def close(self) -> Asked | None:
        """The request that ends the session in the broker; None if there is none."""
        if self.session_id == NO_SESSION:
            return None
        self.epoch = FINAL_EPOCH
        return self.ask({})

    def answered(self, response: FetchResponse, version: int) -> Rows | None:
        """The rows of the answer; None if it does not fit the session, which then begins again."""
        if response.error_code:
            if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._begin_again(NO_SESSION)
            else:
                self._begin_again(self.session_id)
            return None
        rows = self._rows(response, version)
        is_full = self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        named = None if rows is None else {one for one, _ in rows}
        if is_full and not named and response.throttle_time_ms > 0:
            # A broker that throttles gives an answer without partitions and keeps no session (KIP-219).
            self._begin_again(NO_SESSION)
            return None
        if named is None or not (named == self._partitions.keys() if is_full else named <= self._partitions.keys()):
            self._begin_again(NO_SESSION if is_full else self.session_id)
            return None
        if response.session_id == NO_SESSION:
            self._begin_again(NO_SESSION)
        elif is_full:
            self.session_id, self.epoch = response.session_id, 1
        else:
            self.epoch = 1 if self.epoch == _MAX_EPOCH else self.epoch + 1
        return rows

    def failed(self) -> None:
        """No answer arrived: what the broker has of the session is unknown. The next request closes it and opens another."""
        self._begin_again(self.session_id)

    def _begin_again(self, close: int) -> None:
        self.session_id, self.epoch = close, INITIAL_EPOCH

    def _remember_names(self, by_id: bool) -> None:
        self._names = {row.topic_id: one.topic for one, row in self._partitions.items()} if by_id else {}

    def _rows(self, response: FetchResponse, version: int) -> Rows | None:
        """None if the answer has a topic id that is not in the session."""
        rows: Rows = []
        for topic in response.responses:
            name = topic.topic if version <= MAX_VERSION_BY_NAME else self._names.get(topic.topic_id)
            if name is None:
                return None
            rows += [(TopicPartition(name, row.partition_index), row) for row in topic.partitions]
        return rows
