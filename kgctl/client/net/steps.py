"""The interface between client logic and drivers: logic is a generator that yields calls, a pause, or other steps; a driver runs it.

A driver answers a list of calls with one answer per call, in the same order: the response or an error. It answers a pause
with an empty list, or throws TimedOut into the generator if there is no time left.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple
from broker.protocol.wire_types import Message
from kgctl.client.net.errors import KgctlError


class Endpoint(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Call:
    """One request to one address, in a version that both sides know, and the class of its response.

    `wait_ms` is how long the broker itself may hold the answer (Fetch, JoinGroup); drivers wait that much longer.
    `candidates` is how many nodes, including this one, could still answer: they share the time that is left. 0: other
    requests wait, and one node that hangs must not use up their time.
    """

    endpoint: Endpoint
    request: Message
    version: int
    response: type[Message]
    wait_ms: int = 0
    candidates: int = 0


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next attempt; `reason` is for the error message if the time runs out."""

    seconds: float
    reason: str


T = TypeVar("T")
Answer: TypeAlias = "Any | KgctlError"
Steps: TypeAlias = Generator["Sequence[Call] | Pause | Within[Any]", "list[Answer]", T]


@dataclass(frozen=True, slots=True)
class Within(Generic[T]):
    """Steps that may take this long. A driver sends a list with their result, or throws their error."""

    steps: Steps[T]
    seconds: float


def within(steps: Steps[T], seconds: float) -> Steps[T]:
    """The result of steps that may take at most this long; TimedOut if they take longer."""
    found: list[Any] = yield Within(steps, seconds)
    result: T = found[0]
    return result
