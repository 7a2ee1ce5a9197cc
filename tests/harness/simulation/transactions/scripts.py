"""Clients as scripts: generators that yield a request and receive its answer, or that sleep."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from broker.protocol.wire_types import Message
from tests.harness.simulation.clock import MS, SECOND
from tests.harness.simulation.network import Link

if TYPE_CHECKING:
    from tests.harness.simulation.transactions.world import World

# How long a client waits for an answer, and how soon it tries again.
REQUEST_TIMEOUT_US, RETRY_US = 30 * SECOND, 100 * MS


class Ask(NamedTuple):
    request: Message
    version: int


class Sleep(NamedTuple):
    us: int


class Lost(Exception):
    """The connection broke or the answer is late; whether the request was executed is unknown."""


Script: TypeAlias = "Generator[Ask | Sleep, Any, None]"
Answering: TypeAlias = "Generator[Ask | Sleep, Any, Any]"


def until_answered(request: Message, version: int) -> Answering:
    """Repeat a request, as clients do whose requests are idempotent, until an answer arrives."""
    while True:
        try:
            return (yield Ask(request, version))
        except Lost:
            yield Sleep(RETRY_US)


class Client:
    """Runs one script over one connection at a time."""

    def __init__(self, world: World, name: str, script: Callable[[], Script]) -> None:
        self.name = name
        self._world = world
        self._make_script = script
        self._script: Script | None = None
        self._link: Link | None = None
        self._awaited = 0  # correlation id; 0: no answer is awaited
        self._turn = 0  # counts what the script waits for; anything from before is ignored
        self._paused_until_us = 0

    @property
    def alive(self) -> bool:
        return self._script is not None

    def start(self) -> None:
        self._script = self._make_script()
        self._resume(None)

    def crash(self) -> None:
        self._world.note("crash", self.name)
        if self._script is not None:
            self._script.close()
        self._script = None
        self._turn += 1
        if self._link is not None:
            self._link.close()
            self._link = None

    def pause(self, us: int) -> None:
        """Stop the process for a while. What arrives meanwhile is read afterwards."""
        self._world.note("pause", self.name, us)
        self._paused_until_us = self._world.clock.us + us

    # ---- the script --------------------------------------------------------------------------------------------------

    def _resume(self, value: Any) -> None:
        if self._script is None:
            return
        self._turn += 1
        self._awaited = 0
        try:
            asked = self._script.throw(value) if isinstance(value, Lost) else self._script.send(value)
        except StopIteration:
            self._script = None
            return
        if isinstance(asked, Sleep):
            self._later(asked.us, None)
        else:
            self._send(asked)

    def _later(self, us: int, value: Any) -> None:
        self._world.clock.later(us, self._wake, self._turn, value)

    def _wake(self, turn: int, value: Any) -> None:
        if turn != self._turn:
            return
        left_us = self._paused_until_us - self._world.clock.us
        if left_us > 0:
            self._later(left_us, value)
        else:
            self._resume(value)

    def _send(self, asked: Ask) -> None:
        if self._world.broker.loop.dead:
            self._later(RETRY_US, Lost())
            return
        if self._link is None or self._link.broker is not self._world.broker:
            self._link = Link(self._world, self)  # type: ignore[arg-type]
        self._awaited = self._link.send(asked.request, asked.version)
        self._world.clock.later(REQUEST_TIMEOUT_US, self._give_up, self._turn)

    def _give_up(self, turn: int) -> None:
        if turn == self._turn and self._link is not None:
            self._link.close()
            self._link = None
            self._wake(turn, Lost())

    # ---- the network -------------------------------------------------------------------------------------------------

    def received(self, link: Link, correlation: int, response: Any) -> None:
        if link is self._link and correlation == self._awaited:
            self._wake(self._turn, response)

    def disconnected(self, link: Link) -> None:
        if link is self._link:
            self._link = None
            if self._awaited:
                self._wake(self._turn, Lost())
