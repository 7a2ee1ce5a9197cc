"""What a client knows about a cluster: versions, leaders, coordinators; and retries. Steps without I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from broker.light_dataclasses import dataclass, field
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.wire_types import Message
from kgctl.client.net.authorization import Asked
from kgctl.client.net.errors import BrokerError, KgctlError, LeftOut, Refused, TimedOut, Unreachable, Unsupported
from kgctl.client.net.steps import Answer, Call, Endpoint, Pause, Steps
from kgctl.model.topic_partition import TopicPartition

GROUP, TRANSACTION = 0, 1  # what a coordinator is responsible for, by Kafka's number
NOUNS = {GROUP: "group", TRANSACTION: "transactional id"}
# Seconds; about three in total until a failing item becomes a row with its error.
RETRY_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)

K = TypeVar("K")
R = TypeVar("R", bound=Message)
Found: TypeAlias = "dict[K, Any]"
# The meaning of a result if an earlier attempt, whose answer was lost, may already have made the change.
Repeated: TypeAlias = "Callable[[K, Any], Any]"


@dataclass(frozen=True, slots=True, order=True)
class Node:
    node_id: int
    host: str
    port: int

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.host, self.port)


@dataclass(frozen=True, slots=True)
class Ask(Generic[R]):
    """A request for one node, in the highest version that both sides know and the bounds allow."""

    endpoint: Endpoint
    request: Message
    response: type[R]
    min_version: int = 0
    max_version: int = 1 << 15
    wait_ms: int = 0
    candidates: int = 0


@dataclass(frozen=True, slots=True)
class Batch(Generic[K]):
    """One request about several keys, and how to read a result or an error per key from its response."""

    ask: Ask[Any]
    keys: Sequence[K]
    read: Callable[[Any], Found[K]]


@dataclass(slots=True)
class Cluster:
    """Caches of one cluster. A driver runs the methods that return Steps."""

    bootstrap: tuple[Endpoint, ...]
    retry_waits: tuple[float, ...] = RETRY_WAITS
    nodes: dict[int, Node] = field(default_factory=dict)
    controller_id: int = -1
    cluster_id: str | None = None
    # As the last listing of groups says; see admin.groups.
    group_types: dict[str, str] = field(default_factory=dict)
    _ranges: dict[Endpoint, dict[int, tuple[int, int]]] = field(default_factory=dict)
    _leaders: dict[TopicPartition, Node] = field(default_factory=dict)
    _coordinators: dict[tuple[int, str], Node] = field(default_factory=dict)
    _features: dict[Endpoint, dict[str, int]] = field(default_factory=dict)

    # --- requests ---

    def ask_each(self, asks: Sequence[Ask[Any]]) -> Steps[list[Answer]]:
        """Ask nodes in parallel; the response or a KgctlError for each ask."""
        candidates = max((ask.candidates for ask in asks), default=0)
        failures = yield from self._learn_versions({ask.endpoint for ask in asks}, candidates)
        answers: list[Answer] = [None] * len(asks)
        calls: list[Call] = []
        places: list[int] = []
        for index, ask in enumerate(asks):
            version = failures.get(ask.endpoint) or self.highest_version(
                ask.endpoint, type(ask.request), ask.min_version, ask.max_version
            )
            if isinstance(version, KgctlError):
                answers[index] = version
                continue
            shared = ask.candidates or self._candidates
            calls.append(Call(ask.endpoint, ask.request, version, ask.response, ask.wait_ms, shared))
            places.append(index)
        if calls:
            for index, answer in zip(places, (yield calls), strict=True):
                answers[index] = answer
        return answers

    def ask(self, ask: Ask[R]) -> Steps[R]:
        """Ask one node. Raises its error."""
        (answer,) = yield from self.ask_each([ask])
        if isinstance(answer, KgctlError):
            raise answer
        result: R = answer
        return result

    def ask_any(
        self, request: Message, response: type[R], *, min_version: int = 0, max_version: int = 1 << 15
    ) -> Steps[R]:
        """Ask the first node that answers: known nodes before those of the bootstrap list."""
        failures: list[KgctlError] = []
        endpoints = list(dict.fromkeys([*(node.endpoint for node in self._sorted_nodes()), *self.bootstrap]))
        for left, endpoint in zip(range(len(endpoints), 0, -1), endpoints, strict=True):
            ask = Ask(endpoint, request, response, min_version, max_version, candidates=left)
            try:
                return (yield from self.ask(ask))
            except (Unreachable, TimedOut) as failure:
                failures.append(failure)
        kind = Refused if all(isinstance(failure, Refused) for failure in failures) else Unreachable
        raise failures[0] if len(failures) == 1 else kind("; ".join(map(str, failures)))

    def range_of(self, endpoint: Endpoint, api_key: int) -> tuple[int, int] | None:
        """The version range that a node offers for an API; None if it does not offer it, or has not been asked."""
        return self._ranges.get(endpoint, {}).get(api_key)

    def offers(self, endpoint: Endpoint) -> tuple[dict[int, tuple[int, int]], dict[str, int]]:
        """All version ranges by API key, and all feature levels, of a node that has been asked."""
        return self._ranges.get(endpoint, {}), self._features.get(endpoint, {})

    def feature_level(self, name: str) -> int:
        """The finalized level of a feature (KIP-584), as the nodes that have been asked say; 0 if they do not know it."""
        return min((levels.get(name, 0) for levels in self._features.values()), default=0)

    def highest_version(
        self, endpoint: Endpoint, request: type[Message], min_version: int = 0, max_version: int = 1 << 15
    ) -> int | Unsupported:
        """The highest version within the bounds that client and node have in common. The node has been asked for its versions."""
        ours = request.VERSIONS
        low, high = self.range_of(endpoint, request.API_KEY) or (1, 0)
        version = min(high, ours[-1], max_version)
        if version < max(low, ours[0], min_version):
            name = request.__name__.removesuffix("Request")
            return Unsupported(f"{endpoint}: the broker does not offer {name} in a suitable version")
        return version

    @property
    def _candidates(self) -> int:
        """The only node of a cluster may use all of the time: no other node can answer."""
        return 1 if len(self.nodes) <= 1 else 0

    def _learn_versions(self, endpoints: set[Endpoint], candidates: int = 0) -> Steps[dict[Endpoint, KgctlError]]:
        """Ask new nodes for ApiVersions; again in version 0 if a node does not know the first version (KIP-511)."""
        unknown = sorted(endpoints - self._ranges.keys())
        failures: dict[Endpoint, KgctlError] = {}
        for version in (ApiVersionsRequest.VERSIONS[-1], 0):
            if not unknown:
                break
            request = ApiVersionsRequest(client_software_name="kgctl", client_software_version="0.1")
            shared = candidates or self._candidates
            answers = yield [
                Call(endpoint, request, version, ApiVersionsResponse, candidates=shared) for endpoint in unknown
            ]
            again = []
            for endpoint, answer in zip(unknown, answers, strict=True):
                if isinstance(answer, KgctlError):
                    failures[endpoint] = _silent(endpoint) if isinstance(answer, TimedOut) else answer
                elif answer.error_code == ErrorCode.UNSUPPORTED_VERSION and version:
                    again.append(endpoint)
                elif answer.error_code:
                    failures[endpoint] = BrokerError(answer.error_code, str(endpoint))
                else:
                    self._ranges[endpoint] = {
                        row.api_key: (row.min_version, row.max_version) for row in answer.api_keys
                    }
                    self._features[endpoint] = {row.name: row.max_version_level for row in answer.finalized_features}
            unknown = again
        return failures

    # --- metadata ---

    def metadata(self, topics: Sequence[str] | None = None) -> Steps[MetadataResponse]:
        """Ask for topics (None: all; empty: only nodes), and remember nodes and leaders. Never creates a topic."""
        wanted = None if topics is None else [MetadataRequest.Topic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        # From version 4 on, a request can ask not to create topics.
        answer = yield from self.ask_any(request, MetadataResponse, min_version=4)
        self.nodes = {row.node_id: Node(row.node_id, row.host, row.port) for row in answer.brokers}
        self.controller_id, self.cluster_id = answer.controller_id, answer.cluster_id
        for topic in answer.topics:
            for row in topic.partitions:
                key, leader = TopicPartition(topic.name or "", row.partition_index), self.nodes.get(row.leader_id)
                if leader is None:
                    self._leaders.pop(key, None)
                else:
                    self._leaders[key] = leader
        return answer

    def all_nodes(self) -> Steps[list[Node]]:
        if not self.nodes:
            yield from self.metadata([])
        return self._sorted_nodes()

    def controller(self) -> Steps[Node]:
        """The node that creates and deletes topics."""
        if self.controller_id not in self.nodes:
            yield from self.metadata([])
        known = self.nodes.get(self.controller_id)
        return known or (yield from self.all_nodes())[0]

    def leaders(self, partitions: Iterable[TopicPartition]) -> Steps[dict[TopicPartition, Node | KgctlError]]:
        """The leader of each partition, or an error if it has none. Looks up unknown ones with one request."""
        wanted = list(dict.fromkeys(partitions))
        missing = sorted({partition.topic for partition in wanted if partition not in self._leaders})
        errors: dict[TopicPartition, KgctlError] = {}
        if missing:
            answer = yield from self.metadata(missing)
            topic_errors = {topic.name: topic.error_code for topic in answer.topics}
            partition_errors = {(t.name, p.partition_index): p.error_code for t in answer.topics for p in t.partitions}
            for partition in wanted:
                if partition not in self._leaders:
                    code = topic_errors.get(partition.topic) or partition_errors.get(
                        partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    )
                    errors[partition] = BrokerError(
                        code or ErrorCode.LEADER_NOT_AVAILABLE,
                        str(partition),
                        asked=Asked(MetadataRequest, topic=partition.topic),
                    )
        return {key: self._leaders.get(key) or errors[key] for key in wanted}

    def forget_leader(self, partition: TopicPartition) -> None:
        self._leaders.pop(partition, None)

    # --- coordinators ---

    def coordinators(self, keys: Iterable[str], kind: int = GROUP) -> Steps[dict[str, Node | KgctlError]]:
        """The coordinator of each group or transactional id, or an error. One request for all where the broker can (v4)."""
        wanted = list(dict.fromkeys(keys))
        missing = [key for key in wanted if (kind, key) not in self._coordinators]
        errors: dict[str, KgctlError] = {}
        for chunk in chunks(missing, 1000):
            errors |= yield from self._find_coordinators(chunk, kind)
        return {key: self._coordinators.get((kind, key)) or errors[key] for key in wanted}

    def forget_coordinator(self, key: str, kind: int = GROUP) -> None:
        self._coordinators.pop((kind, key), None)

    def _find_coordinators(self, keys: Sequence[str], kind: int) -> Steps[dict[str, KgctlError]]:
        errors: dict[str, KgctlError] = {}
        try:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
            answer = yield from self.ask_any(request, FindCoordinatorResponse, min_version=4)
        except Unsupported:
            for key in keys:
                request = FindCoordinatorRequest(key=key, key_type=kind)
                lowest = 0 if kind == GROUP else 1
                one = yield from self.ask_any(request, FindCoordinatorResponse, min_version=lowest, max_version=3)
                errors |= self._note_coordinator(key, kind, one)
            return errors
        for row in answer.coordinators:
            errors |= self._note_coordinator(row.key, kind, row)
        return errors

    def _note_coordinator(
        self, key: str, kind: int, row: FindCoordinatorResponse | FindCoordinatorResponse.Coordinator
    ) -> dict[str, KgctlError]:
        if row.error_code:
            asked = Asked(FindCoordinatorRequest, **{"group" if kind == GROUP else "transactional_id": key})
            return {key: BrokerError(row.error_code, f"{NOUNS[kind]} {key!r}", row.error_message, asked=asked)}
        self._coordinators[kind, key] = Node(row.node_id, row.host, row.port)
        return {}

    # --- batches with retries ---

    def at_coordinators(
        self,
        keys: Iterable[str],
        make: Callable[[Node, list[str]], list[Batch[str]]],
        repeated: Repeated[str] | None = None,
        kind: int = GROUP,
    ) -> Steps[Found[str]]:
        """Send each coordinator the batches that `make` builds for its groups or transactional ids; a result or error per key.

        Looks up coordinators and retries. `repeated` interprets the result of a retry after a lost answer.
        """
        find, forget = partial(self.coordinators, kind=kind), partial(self.forget_coordinator, kind=kind)
        return (yield from self._retrying(keys, find, forget, make, repeated))

    def at_leaders(
        self,
        partitions: Iterable[TopicPartition],
        make: Callable[[Node, list[TopicPartition]], list[Batch[TopicPartition]]],
    ) -> Steps[Found[TopicPartition]]:
        """Like at_coordinators, for partitions and their leaders."""
        return (yield from self._retrying(partitions, self.leaders, self.forget_leader, make))

    def at_controller(
        self,
        names: Iterable[str],
        make: Callable[[Node, list[str]], list[Batch[str]]],
        repeated: Repeated[str] | None = None,
    ) -> Steps[Found[str]]:
        """Like at_coordinators, for topics that the controller creates or deletes."""

        def find(pending: Iterable[str]) -> Steps[dict[str, Node | KgctlError]]:
            controller = yield from self.controller()
            return dict.fromkeys(pending, controller)

        return (yield from self._retrying(names, find, lambda _: self.nodes.clear(), make, repeated))

    def _retrying(
        self,
        keys: Iterable[K],
        find: Callable[[Iterable[K]], Steps[dict[K, Node | KgctlError]]],
        forget: Callable[[K], None],
        make: Callable[[Node, list[K]], list[Batch[K]]],
        repeated: Repeated[K] | None = None,
    ) -> Steps[Found[K]]:
        """Ask about all keys, then again about those with a retriable error, with growing pauses.

        A key that still fails has its error as the result; it does not affect the others.
        """
        order = pending = list(dict.fromkeys(keys))
        results: Found[K] = {}
        maybe_done: set[K] = set()
        for wait in (*self.retry_waits, None):
            if not pending:
                break
            found, unsure = yield from self._ask_once((yield from find(pending)), make)
            for key in pending:
                results[key] = repeated(key, found[key]) if repeated and key in maybe_done else found[key]
            maybe_done |= unsure
            pending = [key for key in pending if isinstance(results[key], KgctlError) and results[key].retriable]
            for key in pending:
                forget(key)
            if pending and wait is not None:
                try:
                    yield Pause(wait, str(results[pending[0]]))
                except TimedOut:
                    break
        return {key: results[key] for key in order}

    def _ask_once(
        self, found: dict[K, Node | KgctlError], make: Callable[[Node, list[K]], list[Batch[K]]]
    ) -> Steps[tuple[Found[K], set[K]]]:
        """The results, and the keys whose request may have been executed although its answer was lost."""
        # Before `make`, which may need the versions that a node offers.
        failures = yield from self._learn_versions({node.endpoint for node in found.values() if isinstance(node, Node)})
        results: Found[K] = {}
        unsure: set[K] = set()
        by_node: dict[Node, list[K]] = {}
        for key, node in found.items():
            if isinstance(node, KgctlError):
                results[key] = node
            elif node.endpoint in failures:
                results[key] = failures[node.endpoint]
            else:
                by_node.setdefault(node, []).append(key)
        missing = object()
        batches = [batch for node, keys in sorted(by_node.items()) for batch in make(node, keys)]
        answers = yield from self.ask_each([batch.ask for batch in batches])
        for batch, answer in zip(batches, answers, strict=True):
            read = {} if isinstance(answer, KgctlError) else batch.read(answer)
            for key in batch.keys:
                result = answer if isinstance(answer, KgctlError) else read.get(key, missing)
                results[key] = LeftOut(str(key)) if result is missing else result
                if _may_have_executed(result):
                    unsure.add(key)
        return results, unsure

    def _sorted_nodes(self) -> list[Node]:
        return sorted(self.nodes.values())


def _may_have_executed(result: object) -> bool:
    if isinstance(result, BrokerError):
        return result.code == ErrorCode.REQUEST_TIMED_OUT
    return isinstance(result, Unreachable) and not isinstance(result, Refused)


def _silent(endpoint: Endpoint) -> Unreachable:
    return Unreachable(f"{endpoint}: it accepts connections but does not answer: it hangs, needs TLS, or is not Kafka")


def chunks(items: Sequence[K], size: int) -> Iterable[Sequence[K]]:
    return (items[start : start + size] for start in range(0, len(items), size))
