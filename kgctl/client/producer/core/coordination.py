"""The requests of a producer that are not about records: one at a time, the most urgent first, repeated until answered."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol

from broker.protocol.wire_types import Message
from kgctl.client.net.errors import KgctlError, TimedOut, Unsupported
from kgctl.client.network.coordinator import Coordinator
from kgctl.client.network.outgoing import Outgoing


class Network(Protocol):
    """What producers need of a NetworkClient."""

    def is_ready(self, node_id: int, now_ms: int) -> bool: ...
    def ready_at_ms(self, node_id: int, now_ms: int) -> int | None: ...
    def send(self, node_id: int, outgoing: Outgoing[Any], now_ms: int) -> None: ...
    def send_any(self, outgoing: Outgoing[Any], now_ms: int) -> None: ...
    def version_of(
        self, node_id: int, request: type[Message], min_version: int = 0, max_version: int = 1 << 15
    ) -> int | Unsupported | None: ...


class Priority(IntEnum):
    """The order of requests that wait at the same time."""

    INIT_PRODUCER_ID = 1
    ADD = 2
    END = 3
    BUMP_EPOCH = 4


class Outcome:
    """The result of a call such as a commit. `was_sent`: the broker may have carried it out, whatever the error says."""

    __slots__ = ("error", "is_done", "is_seen", "was_sent")

    def __init__(self) -> None:
        self.is_done = self.is_seen = self.was_sent = False
        self.error: KgctlError | None = None

    def finish(self, error: KgctlError | None = None) -> None:
        if not self.is_done:
            self.is_done, self.error = True, error


class Step(Protocol):
    """One request, and what to do with the answer. `handle` returns whether to repeat it after a pause."""

    priority: Priority
    outcome: Outcome
    min_version: int
    max_version: int

    @property
    def response(self) -> type[Message]: ...
    @property
    def coordinator(self) -> Coordinator | None:
        """Whom to ask; None for any node."""

    def request(self) -> Message: ...
    def handle(self, answer: Any) -> bool: ...
    def fail(self, error: KgctlError) -> None: ...
    def pause_ms(self, attempts: int) -> int: ...


class StepQueue:
    """`wait` is the pause after that many attempts, in milliseconds."""

    def __init__(self, network: Network, request_timeout_ms: int, wait: Callable[[int], int]) -> None:
        self._network, self._request_timeout_ms = network, request_timeout_ms
        self._wait = wait
        self._waiting: list[tuple[int, int, Step]] = []
        self._count = 0
        self._attempts = 0
        self._not_before = 0
        self.in_flight: Step | None = None

    def __len__(self) -> int:
        return len(self._waiting) + (self.in_flight is not None)

    def put(self, step: Step) -> None:
        self._count += 1
        heapq.heappush(self._waiting, (step.priority, self._count, step))

    def peek(self) -> Step | None:
        return self._waiting[0][2] if self._waiting else None

    def drop_first(self) -> Step:
        return heapq.heappop(self._waiting)[2]

    def steps(self) -> list[Step]:
        return [step for _, _, step in self._waiting]

    def clear(self) -> None:
        self._waiting.clear()

    def send_first(self, now_ms: int) -> bool:
        """Send the first step if its coordinator is known and ready, and it need not pause. Whether it was sent."""
        step = self.peek()
        if step is None or self.in_flight is not None or now_ms < self._not_before:
            return False
        coordinator = step.coordinator
        if coordinator is None:
            self.drop_first()
            self.in_flight = step
            self._network.send_any(self._outgoing(step), now_ms)
            return True
        coordinator.seek(now_ms)
        if coordinator.error is not None:
            error = coordinator.error
            coordinator.retry()
            self.drop_first()
            step.fail(error)
            return False
        node_id = coordinator.node_id
        if node_id is None or not self._network.is_ready(node_id, now_ms):
            return False
        self.drop_first()
        self.in_flight = step
        self._network.send(node_id, self._outgoing(step), now_ms)
        return True

    def wake_at_ms(self, now_ms: int) -> int | None:
        """When to try again; None if only an event can change something."""
        step = self.peek()
        if step is None or self.in_flight is not None:
            return None
        if now_ms < self._not_before:
            return self._not_before
        if step.coordinator is None:
            return None
        node_id = step.coordinator.node_id
        return step.coordinator.wake_at_ms() if node_id is None else self._network.ready_at_ms(node_id, now_ms)

    def _outgoing(self, step: Step) -> Outgoing[Any]:
        step.outcome.was_sent = True

        def done(answer: Any, now_ms: int) -> None:
            self._done(step, answer, now_ms)

        return Outgoing(
            step.request(),
            step.response,
            done,
            self._request_timeout_ms,
            min_version=step.min_version,
            max_version=step.max_version,
        )

    def _done(self, step: Step, answer: Any, now_ms: int) -> None:
        self.in_flight = None
        if isinstance(answer, KgctlError) and not answer.is_final and not isinstance(answer, Unsupported):
            # No answer: the coordinator may have moved.
            if step.coordinator is not None:
                step.coordinator.lost(str(answer))
            self._again(step, now_ms, self._wait(self._attempts + 1) if isinstance(answer, TimedOut) else 0)
        elif isinstance(answer, KgctlError):
            step.fail(answer)
        elif step.handle(answer):
            self._again(step, now_ms, step.pause_ms(self._attempts + 1))
        else:
            self._attempts = 0

    def _again(self, step: Step, now_ms: int, pause_ms: int) -> None:
        self._attempts += 1
        self._not_before = now_ms + pause_ms
        self.put(step)
