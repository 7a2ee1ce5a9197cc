"""Clients that ask single questions over an engine."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from broker.protocol.wire_types import Message
from kgctl.client.config.configuration import from_properties
from kgctl.client.engine.engine import Engine
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Endpoint
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.outgoing import Outgoing
from kgctl.client.network.settings import NetworkSettings

R = TypeVar("R", bound=Message)
SECONDS = 30.0


class Asking:
    """A participant that sends what `ask` is given, as soon as the node is ready."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.network = engine, engine.network
        self._waiting: deque[tuple[int, Outgoing[Any]]] = deque()
        engine.participants.append(self)

    def send(self, node_id: int, request: Message, response: type[R], timeout_ms: int = 30_000) -> list[Any]:
        """The list gets the answer or the error."""
        answers: list[Any] = []
        with self.engine.lock:
            outgoing = Outgoing(request, response, lambda answer, _: answers.append(answer), timeout_ms)
            self._waiting.append((node_id, outgoing))
        self.engine.wake()
        return answers

    def ask(self, request: Message, response: type[R], node_id: int = 1, timeout_ms: int = 30_000) -> R:
        answers = self.send(node_id, request, response, timeout_ms)
        assert self.engine.wait(lambda: bool(answers), SECONDS), "no answer"
        if isinstance(answers[0], KgctlError):
            raise answers[0]
        return answers[0]  # type: ignore[no-any-return]

    def advance(self, now_ms: int) -> None:
        for _ in range(len(self._waiting)):
            node_id, outgoing = self._waiting.popleft()
            if self.network.is_ready(node_id, now_ms):
                self.network.send(node_id, outgoing, now_ms)
            else:
                self._waiting.append((node_id, outgoing))

    def wake_at_ms(self) -> int | None:
        return None


@contextmanager
def asking(*addresses: Endpoint, settings: NetworkSettings | None = None, **properties: str) -> Iterator[Asking]:
    """A client in a thread of its own. `properties` have underscores for dots."""
    given = {name.replace("_", "."): value for name, value in properties.items()}
    servers = ",".join(map(str, addresses))
    connection: ConnectionSettings = from_properties("admin", given | {"bootstrap.servers": servers}).connection()
    network = NetworkClient(connection.bootstrap, settings or NetworkSettings(), random.Random(1))
    engine = Engine.in_thread(network, connection)
    made = Asking(engine)
    engine.start()
    try:
        yield made
    finally:
        assert engine.close(SECONDS)
