"""What a client knows about a cluster: nodes, topics, partitions and their leaders; and when to ask again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass, field
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.wire_types import ZERO_UUID
from kgctl.client.net.authorization import Asked
from kgctl.client.net.errors import BrokerError, KgctlError, Unsupported
from kgctl.client.network.backoff import backoff_ms
from kgctl.client.network.nodes import NEVER, Node
from kgctl.client.network.settings import NetworkSettings
from kgctl.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from random import Random


class Leader(NamedTuple):
    """The leader of a partition. `epoch` is -1 on brokers that do not report it."""

    node: Node
    epoch: int
    rack: str | None


@dataclass(slots=True, eq=True)
class PartitionState:
    """A partition as the newest answer describes it. A leader id of -1: it has none."""

    leader_id: int
    epoch: int
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    # Answers to other requests may show a newer epoch; the leader is unknown until the metadata has it.
    seen_epoch: int = -1


@dataclass(slots=True, eq=True)
class TopicState:
    topic_id: bytes
    is_internal: bool
    partitions: dict[int, PartitionState] = field(default_factory=dict)


class Question(NamedTuple):
    """A request for metadata. `is_partial`: only about topics that are new; the others are numbered from 1."""

    request: MetadataRequest
    is_partial: bool
    number: int


class Metadata:
    """What several parts of a client want adds up. Times are of the clock of the client's turns, in milliseconds."""

    def __init__(self, settings: NetworkSettings, random: Random, bootstrap: Iterable[Node] = ()) -> None:
        self.version = 0  # counts updates
        self.cluster_id: str | None = None
        self.controller_id = -1
        # A failure that no retry helps, such as refused credentials.
        self.error: KgctlError | None = None
        self.listeners: list[Callable[[Metadata], None]] = []
        self._settings, self._random = settings, random
        self._bootstrap = tuple(bootstrap)
        self._nodes: dict[int, Node] = {node.node_id: node for node in self._bootstrap}
        self._topics: dict[str, TopicState] = {}
        self._names: dict[bytes, str] = {}
        self._errors: dict[str, KgctlError] = {}
        self._wanted: set[str] = set()
        self._wants_all = False
        self._used_until: dict[str, int] = {}
        # What must be asked: everything, or the topics that are new.
        self._is_stale = True
        self._new: set[str] = set()
        # Numbers of questions: the newest that was asked, and the first whose answer is new enough.
        self._asked = 0
        self._needed = 0
        self.answered = 0  # the newest question that was answered
        self._refreshed_ms = -NEVER
        self._succeeded_ms = -NEVER
        self._pause_ms = 0
        self._failures = 0
        self._repetitions = 0

    # --- what is wanted ---

    def want(self, topics: Iterable[str]) -> None:
        """Ask for these topics, too, with the next request."""
        self._add(set(topics) - self._wanted)

    def want_only(self, topics: Iterable[str]) -> None:
        """Ask for these topics, and no longer for others."""
        before, self._wanted = self._wanted, set(topics)
        self._wants_all = False
        self._used_until.clear()
        self._forget_unwanted()
        self._add(self._wanted - before - self._topics.keys())

    def want_all(self) -> None:
        """Ask for all topics of the cluster, until the next `want_only`."""
        if not self._wants_all:
            self._wants_all = True
            self._ask_soon()
            self.request_update()

    def use(self, topic: str, now_ms: int) -> None:
        """Want a topic until it has not been used for `metadata.max.idle.ms`."""
        self._used_until[topic] = now_ms + self._settings.metadata_max_idle_ms
        if topic not in self._wanted:
            self._add({topic})

    def wanted(self) -> Collection[str] | None:
        """The topics to ask for; None: all."""
        return None if self._wants_all else self._wanted

    def request_update(self) -> int:
        """Ask again soon. Returns the number of the question: once `answered` has it, the answer is newer than this call."""
        self._is_stale = True
        self._needed = self._asked + 1
        return self._needed

    def take_error(self) -> None:
        """Raise a failure that no retry helps, such as refused credentials, once. After it, connecting is tried again."""
        error, self.error = self.error, None
        if error is not None:
            raise error

    # --- what is known ---

    def nodes(self) -> Mapping[int, Node]:
        """By id. Before the first answer: the bootstrap list, with negative ids."""
        return self._nodes

    @property
    def is_bootstrapped(self) -> bool:
        """Whether the nodes come from the cluster, and not from the bootstrap list."""
        return self.version > 0 and not (self._bootstrap and self._bootstrap[0].node_id in self._nodes)

    def topics(self) -> Collection[str]:
        """The topics that exist, among those that were asked for."""
        return self._topics.keys()

    def topic(self, topic: str) -> TopicState | None:
        return self._topics.get(topic)

    def is_internal(self, topic: str) -> bool:
        found = self._topics.get(topic)
        return found is not None and found.is_internal

    def leader(self, partition: TopicPartition) -> Leader | None:
        """The leader of a partition, None if it has none or is unknown."""
        topic = self._topics.get(partition[0])
        state = None if topic is None else topic.partitions.get(partition[1])
        if state is None or state.epoch < state.seen_epoch:
            return None
        node = self._nodes.get(state.leader_id)
        if node is None:
            return None
        return Leader(node, state.epoch, node.rack)

    def partition_count(self, topic: str) -> int | None:
        found = self._topics.get(topic)
        return None if found is None else len(found.partitions)

    def topic_id(self, topic: str) -> bytes | None:
        """The id (KIP-516); None if the topic is unknown, or the brokers are too old for ids."""
        found = self._topics.get(topic)
        return None if found is None or found.topic_id == ZERO_UUID else found.topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._names.get(topic_id)

    def error_of(self, topic: str) -> KgctlError | None:
        """Why the newest answer says nothing about a topic."""
        return self._errors.get(topic)

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """The ids of the nodes with a replica."""
        state = self._state(partition)
        return () if state is None else state.replicas

    def is_online_replica(self, partition: TopicPartition, node_id: int) -> bool:
        """Whether a node is in the cluster and has a replica that is not offline."""
        state = self._state(partition)
        return (
            state is not None and node_id in self._nodes and node_id in state.replicas and node_id not in state.offline
        )

    def epoch_of(self, partition: TopicPartition) -> int | None:
        """The newest leader epoch that was seen for a partition."""
        state = self._state(partition)
        return None if state is None or state.seen_epoch < 0 else state.seen_epoch

    def note_epoch(self, partition: TopicPartition, epoch: int) -> bool:
        """A leader epoch from an answer of another kind. A newer one makes the metadata stale, and gives True (KIP-320)."""
        state = self._state(partition)
        if state is None or not -1 < state.seen_epoch < epoch:
            return False
        state.seen_epoch = epoch
        self._is_stale = True
        return True

    def note_leaders(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
    ) -> set[TopicPartition]:
        """New leaders (node id, epoch) that a Produce or Fetch answer names (KIP-951); the partitions that this changed."""
        self._nodes.update({node.node_id: node for node in nodes})
        changed = set()
        for key, (leader_id, epoch) in leaders.items():
            state = self._state(key)
            if state is not None and epoch > state.epoch and leader_id in self._nodes:
                state.leader_id, state.epoch = leader_id, epoch
                state.seen_epoch = max(epoch, state.seen_epoch)
                changed.add(key)
        if changed:
            self._updated()
        return changed

    # --- for the network ---

    def due_ms(self) -> int:
        """When to ask next."""
        if self._is_stale or self._new:
            return self._refreshed_ms + self._pause_ms
        return max(self._succeeded_ms + self._settings.metadata_max_age_ms, self._refreshed_ms + self._pause_ms)

    def ask(self, now_ms: int) -> Question:
        """What to ask now. Only about new topics, if nothing else is due."""
        is_due = self._is_stale or now_ms >= self._succeeded_ms + self._settings.metadata_max_age_ms
        is_partial = bool(self._new) and not is_due and not self._wants_all
        if not is_partial:
            self._drop_unused(now_ms)
        names = None if self._wants_all else sorted(self._new if is_partial else self._wanted)
        topics = None if names is None else [MetadataRequest.Topic(name=name) for name in names]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=self._settings.allow_auto_create_topics)
        self._asked += not is_partial
        return Question(request, is_partial, self._asked)

    def update(self, question: Question, answer: MetadataResponse, now_ms: int) -> None:
        """The answer to a question."""
        asked = None if question.request.topics is None else {topic.name or "" for topic in question.request.topics}
        before = self._picture()
        self._nodes = {row.node_id: Node(row.node_id, row.host, row.port, row.rack) for row in answer.brokers}
        self.cluster_id, self.controller_id = answer.cluster_id, answer.controller_id
        needs_more = self._read_topics(answer.topics)
        self._new = set() if asked is None else self._new - asked
        self._refreshed_ms, self._failures = now_ms, 0
        if not question.is_partial:
            listed = {row.name for row in answer.topics}
            for name in [name for name in self._topics if name not in listed]:
                self._forget(name)
            self._succeeded_ms = now_ms
            # What was requested while the question was on its way is not answered yet.
            self._is_stale = question.number < self._needed
            self.answered = question.number
        self._is_stale = self._is_stale or needs_more
        is_repetition = self.version > 0 and before == self._picture()
        self._repetitions = self._repetitions + 1 if is_repetition else 0
        self._pause_ms = 0 if self._new else self._backoff(max(0, self._repetitions - 1))
        self.error = None
        self._updated()

    def failed(self, now_ms: int, error: KgctlError | None = None) -> None:
        """A request got no answer, or one that says nothing."""
        self._refreshed_ms = now_ms
        self._pause_ms = self._backoff(self._failures)
        self._failures += 1
        if isinstance(error, Unsupported):
            self.error = error

    def rebootstrap(self) -> None:
        """Begin again with the bootstrap list (KIP-899)."""
        self._nodes = {node.node_id: node for node in self._bootstrap}
        self._is_stale = True

    # --- inner parts ---

    def _add(self, topics: set[str]) -> None:
        if topics:
            self._wanted |= topics
            self._new |= topics
            self._ask_soon()

    def _ask_soon(self) -> None:
        self._repetitions = 0
        if not self._failures:
            self._pause_ms = 0

    def _drop_unused(self, now_ms: int) -> None:
        for topic in [topic for topic, until in self._used_until.items() if until <= now_ms]:
            del self._used_until[topic]
            self._wanted.discard(topic)
            self._new.discard(topic)
            self._forget(topic)

    def _forget_unwanted(self) -> None:
        for topic in [topic for topic in self._topics if topic not in self._wanted]:
            self._forget(topic)
        self._new &= self._wanted
        for topic in [topic for topic in self._errors if topic not in self._wanted]:
            del self._errors[topic]

    def _forget(self, topic: str) -> None:
        found = self._topics.pop(topic, None)
        self._errors.pop(topic, None)
        if found is not None:
            self._names.pop(found.topic_id, None)

    def _state(self, partition: TopicPartition) -> PartitionState | None:
        topic = self._topics.get(partition[0])
        return None if topic is None else topic.partitions.get(partition[1])

    def _read_topics(self, rows: Iterable[MetadataResponse.Topic]) -> bool:
        """Remember the topics of an answer. True: what it says is temporary, so that it must be asked again."""
        needs_more = False
        for row in rows:
            name = row.name
            if name is None or not (self._wants_all or name in self._wanted):
                continue
            if row.error_code:
                known = BrokerError(row.error_code, f"topic {name!r}", asked=Asked(MetadataRequest, topic=name))
                self._forget(name)
                self._errors[name] = known
                needs_more |= _is_temporary(row.error_code)
            else:
                self._errors.pop(name, None)
                needs_more |= self._read_partitions(name, row)
        return needs_more

    def _read_partitions(self, name: str, row: MetadataResponse.Topic) -> bool:
        old = self._topics.get(name)
        if old is not None and old.topic_id != row.topic_id and ZERO_UUID not in (old.topic_id, row.topic_id):
            self._forget(name)  # another topic of the same name
            old = None
        new = TopicState(row.topic_id, row.is_internal)
        needs_more = False
        for one in row.partitions:
            before = old.partitions.get(one.partition_index) if old is not None else None
            seen = -1 if before is None else before.seen_epoch
            if before is not None and -1 < one.leader_epoch < seen:
                # The broker that answered lags behind.
                needs_more |= before.epoch < seen
                new.partitions[one.partition_index] = before
                continue
            needs_more |= _is_temporary(one.error_code)
            new.partitions[one.partition_index] = PartitionState(
                one.leader_id,
                one.leader_epoch,
                tuple(one.replica_nodes),
                tuple(one.isr_nodes),
                tuple(one.offline_replicas),
                max(seen, one.leader_epoch) if one.leader_epoch >= 0 else -1,
            )
        self._topics[name] = new
        if row.topic_id != ZERO_UUID:
            self._names[row.topic_id] = name
        return needs_more

    def _picture(self) -> object:
        return (dict(self._nodes), self.controller_id, dict(self._topics), dict(self._errors).keys())

    def _backoff(self, failures: int) -> int:
        settings = self._settings
        return backoff_ms(settings.retry_backoff_ms, settings.retry_backoff_max_ms, failures, self._random)

    def _updated(self) -> None:
        self.version += 1
        for listener in list(self.listeners):
            listener(self)


def _is_temporary(code: int) -> bool:
    found = ErrorCode._value2member_map_.get(code)
    return isinstance(found, ErrorCode) and found.retriable
