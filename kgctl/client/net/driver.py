"""Runs steps with blocking sockets: connects on demand, and sends to all nodes before it reads from any."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kgctl.client.net.connection import Connection
from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.net.steps import Answer, Call, Endpoint, Pause, Steps, Within

T = TypeVar("T")


class BlockingDriver:
    """`request_timeout`: seconds a request may take while others wait, in addition to the time that the broker is asked to wait."""

    def __init__(self, connect: Callable[[Endpoint, float], Connection], request_timeout: float) -> None:
        self._connect = connect
        self._request_timeout = request_timeout
        self._connections: dict[Endpoint, Connection] = {}

    def run(self, steps: Steps[T], timeout: float) -> T:
        """Run the steps within `timeout` seconds; returns their result, raises their errors."""
        deadline = time.monotonic() + timeout
        try:
            step = next(steps)
            while True:
                if isinstance(step, Within):
                    step = self._run_within(steps, step, deadline)
                elif not isinstance(step, Pause):
                    step = steps.send(self._exchange(step, deadline))
                elif time.monotonic() + step.seconds < deadline:
                    time.sleep(step.seconds)
                    step = steps.send([])
                else:
                    step = steps.throw(TimedOut(f"gave up after {timeout:g} s: {step.reason}"))
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _run_within(self, steps: Steps[T], inner: Within[Any], deadline: float) -> Any:
        try:
            result = self.run(inner.steps, max(0.0, min(deadline - time.monotonic(), inner.seconds)))
        except KgctlError as error:
            return steps.throw(error)
        return steps.send([result])

    def _connection(self, endpoint: Endpoint, deadline: float) -> Connection:
        """The open connection to an address; opens one if needed. The deadline is a reading of time.monotonic()."""
        known = self._connections.get(endpoint)
        if known is not None and not known.closed and known.has_ended():
            known.close()
        if known is None or known.closed:
            known = self._connections[endpoint] = self._connect(endpoint, deadline)
        return known

    @property
    def is_connected(self) -> bool:
        return any(not connection.closed for connection in self._connections.values())

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _exchange(self, calls: Sequence[Call], deadline: float) -> list[Answer]:
        """Keep one request in flight per node: the answers to two could fill the socket buffers unread."""
        answers: list[Answer] = [None] * len(calls)
        queues: dict[Endpoint, list[int]] = {}
        for index, call in enumerate(calls):
            queues.setdefault(call.endpoint, []).append(index)
        while queues:
            sent = {endpoint: self._send(calls[queue[0]], deadline) for endpoint, queue in queues.items()}
            for endpoint, attempt in sent.items():
                index = queues[endpoint].pop(0)
                answers[index] = self._receive(calls[index], attempt, deadline)
            queues = {endpoint: queue for endpoint, queue in queues.items() if queue}
        return answers

    def _send(self, call: Call, deadline: float) -> Connection | KgctlError:
        limit = self._limit(call, deadline)
        try:
            connection = self._connection(call.endpoint, limit)
            connection.send(call.request, call.version, call.response, limit)
        except KgctlError as error:
            return error
        return connection

    def _receive(self, call: Call, attempt: Connection | KgctlError, deadline: float) -> Answer:
        if isinstance(attempt, KgctlError):
            return attempt
        try:
            return attempt.receive(self._limit(call, deadline))[1]
        except KgctlError as error:
            return error

    def _limit(self, call: Call, deadline: float) -> float:
        now = time.monotonic()
        seconds = max(0.0, deadline - now) / call.candidates if call.candidates else self._request_timeout
        return min(deadline, now + seconds + call.wait_ms / 1000)
