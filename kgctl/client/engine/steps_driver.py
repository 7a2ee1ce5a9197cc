"""Runs steps over an engine: the second driver of what the admin client does, for code that awaits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, TypeVar

from broker.light_dataclasses import dataclass
from kgctl.client.engine.engine import Engine, now_ms
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.net.steps import Answer, Call, Endpoint, Pause, Steps, Within
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.nodes import Node
from kgctl.client.network.outgoing import Outgoing
from kgctl.client.network.settings import NetworkSettings

T = TypeVar("T")


class StepsDriver:
    """For the running asyncio loop. Several runs may be under way at a time; they share connections."""

    def __init__(self, connection: ConnectionSettings, settings: NetworkSettings, request_timeout: float) -> None:
        # Steps know the cluster themselves, and name addresses: the network has no metadata of its own.
        network = NetworkClient((), settings, random.Random())
        self.engine = Engine.in_loop(network, connection)
        self._sends = _Sends(network)
        self.engine.participants.append(self._sends)
        self.engine.start()
        self._request_timeout = request_timeout

    async def run(self, steps: Steps[T], seconds: float) -> T:
        """Run the steps within this time; returns their result, raises their errors."""
        return await self._run(steps, now_ms() + int(seconds * 1000), seconds)

    def close(self) -> None:
        self.engine.close()

    async def _run(self, steps: Steps[T], deadline_ms: int, seconds: float) -> T:
        try:
            step = next(steps)
            while True:
                if isinstance(step, Within):
                    found = await self._run_within(step, deadline_ms)
                    step = steps.throw(found) if isinstance(found, KgctlError) else steps.send([found])
                elif not isinstance(step, Pause):
                    step = steps.send(await self._exchange(step, deadline_ms))
                elif now_ms() + step.seconds * 1000 < deadline_ms:
                    await asyncio.sleep(step.seconds)
                    step = steps.send([])
                else:
                    step = steps.throw(TimedOut(f"gave up after {seconds:g} s: {step.reason}"))
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def _run_within(self, inner: Within[Any], deadline_ms: int) -> Any:
        """The result, or the error."""
        limit = min(deadline_ms, now_ms() + int(inner.seconds * 1000))
        try:
            return await self._run(inner.steps, limit, inner.seconds)
        except KgctlError as error:
            return error

    async def _exchange(self, calls: Sequence[Call], deadline_ms: int) -> list[Answer]:
        engine = self.engine
        with engine.lock:
            sends = [self._sends.add(call, self._limit_ms(call, deadline_ms)) for call in calls]
        try:
            await engine.wait_async(lambda: all(send.is_done for send in sends), None)
        finally:
            for send in sends:
                send.is_done = True  # also if this wait was cancelled
        return [send.answer for send in sends]

    def _limit_ms(self, call: Call, deadline_ms: int) -> int:
        now = now_ms()
        left = max(0, deadline_ms - now)
        share = left // call.candidates if call.candidates else int(self._request_timeout * 1000)
        return min(left, share + call.wait_ms)


@dataclass(slots=True, eq=False)
class _Send:
    """A call on its way."""

    call: Call
    node_id: int
    until_ms: int
    # Why the connection failed before this call: that is no answer to it.
    earlier: KgctlError | None
    is_done: bool = False
    answer: Any = None

    def done(self, answer: Any, now_ms: int) -> None:
        self.answer, self.is_done = answer, True


class _Sends:
    """A participant that sends calls to addresses."""

    def __init__(self, network: NetworkClient) -> None:
        self._network = network
        self._ids: dict[Endpoint, int] = {}
        self._waiting: list[_Send] = []
        self._wake_ms: int | None = None

    def add(self, call: Call, limit_ms: int) -> _Send:
        node_id = self._ids.get(call.endpoint)
        if node_id is None:
            node_id = self._ids[call.endpoint] = len(self._ids)
            self._network.know(Node(node_id, *call.endpoint))
        # A program that asks again has seen that its credentials were refused.
        self._network.metadata.error = None
        send = _Send(call, node_id, now_ms() + limit_ms, self._network.error_of(node_id))
        self._waiting.append(send)
        return send

    def advance(self, now_ms: int) -> None:
        waiting = [send for send in self._waiting if not send.is_done and not self._place(send, now_ms)]
        backoffs = [self._network.ready_at_ms(send.node_id, now_ms) for send in waiting]
        times = [*(send.until_ms for send in waiting), *(backoff for backoff in backoffs if backoff is not None)]
        self._waiting, self._wake_ms = waiting, min(times, default=None)

    def wake_at_ms(self) -> int | None:
        return self._wake_ms

    def _place(self, send: _Send, now_ms: int) -> bool:
        """Whether the call was sent, or has failed."""
        network, call = self._network, send.call
        error = network.error_of(send.node_id)
        if now_ms >= send.until_ms:
            send.done(TimedOut(f"{call.endpoint}: no answer in time"), now_ms)
        elif network.is_ready(send.node_id, now_ms):
            outgoing = Outgoing(
                call.request, call.response, send.done, send.until_ms - now_ms, call.version, call.version
            )
            network.send(send.node_id, outgoing, now_ms)
        elif error is not None and error is not send.earlier:
            send.done(error, now_ms)
        else:
            return False
        if send.is_done:
            network.touch()
        return True
