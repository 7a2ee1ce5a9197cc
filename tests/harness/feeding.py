"""Runs the client's steps without sockets: functions answer, pauses end at once and are recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from broker.protocol.api_keys import APIS
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsResponse
from broker.protocol.messages.find_coordinator import FindCoordinatorResponse
from broker.protocol.messages.metadata import MetadataResponse
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError, TimedOut, Unreachable
from kgctl.client.net.steps import Call, Endpoint, Pause, Steps, Within

T = TypeVar("T")
SEED = Endpoint("seed", 9092)
API_VERSIONS, METADATA, FIND_COORDINATOR = 18, 3, 10


@dataclass
class Feeder:
    """`answers` by api key; `down` endpoints refuse; `offered` version ranges by api key, by default all of this project."""

    answers: dict[int, Callable[[Call], Any]] = field(default_factory=dict)
    offered: dict[int, tuple[int, int]] = field(
        default_factory=lambda: {k: (a.versions[0], a.versions[-1]) for k, a in APIS.items()}
    )
    down: set[Endpoint] = field(default_factory=set)
    pauses_allowed: int = 1000
    rounds: list[list[Call]] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)

    def run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                if isinstance(step, Within):
                    step = self._within(steps, step)
                else:
                    step = self._pause(steps, step) if isinstance(step, Pause) else steps.send(self._round(step))
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    def calls(self, api_key: int) -> list[Call]:
        return [call for calls in self.rounds for call in calls if api_key == call.request.API_KEY]

    def _pause(self, steps: Steps[Any], pause: Pause) -> Any:
        self.pauses.append(pause)
        if len(self.pauses) > self.pauses_allowed:
            return steps.throw(TimedOut(f"no time left: {pause.reason}"))
        return steps.send([])

    def _within(self, steps: Steps[Any], inner: Within[Any]) -> Any:
        try:
            result = self.run(inner.steps)
        except KgctlError as error:
            return steps.throw(error)
        return steps.send([result])

    def _round(self, calls: Sequence[Call]) -> list[Any]:
        self.rounds.append(list(calls))
        return [self._answer(call) for call in calls]

    def _answer(self, call: Call) -> Any:
        if call.endpoint in self.down:
            return Unreachable(f"{call.endpoint}: connection refused")
        if call.request.API_KEY in self.answers:
            return self.answers[call.request.API_KEY](call)
        if call.request.API_KEY == API_VERSIONS:
            return offers(self.offered)
        raise AssertionError(f"unexpected {type(call.request).__name__}")


def offers(ranges: dict[int, tuple[int, int]]) -> ApiVersionsResponse:
    rows = [
        ApiVersionsResponse.ApiKey(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in ranges.items()
    ]
    return ApiVersionsResponse(api_keys=rows)


def cluster(**settings: Any) -> Cluster:
    return Cluster((SEED,), **settings)


def endpoint(node_id: int) -> Endpoint:
    return Endpoint(f"n{node_id}", 9092)


def metadata(topics: dict[str, dict[int, int]], nodes: Sequence[int] = (1,)) -> Callable[[Call], MetadataResponse]:
    """Topics as {name: {partition: leader, or -1 for none}}; other topics do not exist."""

    def answer(call: Call) -> MetadataResponse:
        wanted = topics if call.request.topics is None else [row.name for row in call.request.topics]  # type: ignore[attr-defined]
        rows = [
            MetadataResponse.Topic(
                error_code=ErrorCode.NONE if name in topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                name=name,
                partitions=[
                    MetadataResponse.Partition(
                        error_code=ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                        partition_index=n,
                        leader_id=leader,
                        replica_nodes=[1],
                        isr_nodes=[1],
                    )
                    for n, leader in topics.get(name, {}).items()
                ],
            )
            for name in wanted
        ]
        brokers = [MetadataResponse.Broker(node_id=n, host=endpoint(n).host, port=9092) for n in nodes]
        return MetadataResponse(brokers=brokers, controller_id=nodes[0], topics=rows)

    return answer


def coordinators(of: Callable[[str], int]) -> Callable[[Call], FindCoordinatorResponse]:
    """`of` returns the node of a group, or a negative error code."""

    def answer(call: Call) -> FindCoordinatorResponse:
        request: Any = call.request
        if call.version < 4:
            found = of(request.key)
            return FindCoordinatorResponse(
                error_code=max(-found, 0), node_id=found, host=endpoint(found).host, port=9092
            )
        rows = [
            FindCoordinatorResponse.Coordinator(
                key=key, node_id=of(key), host=endpoint(of(key)).host, port=9092, error_code=max(-of(key), 0)
            )
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=rows)

    return answer


def error_of(result: Any) -> str:
    assert isinstance(result, KgctlError), result
    return result.name
