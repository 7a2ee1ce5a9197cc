"""The words between logic and drivers: logic is a generator that yields calls or a pause, a driver carries them out.

A driver answers each list of calls with one answer per call, in the same order: the response, or the reason why there is
none. It answers a pause with an empty list, or throws TimedOut into the generator when there is no time left for it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

from broker.protocol.wire_types import Message
from kgctl.client.net.errors import KgctlError


class Endpoint(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Call:
    """One request to one address, in a version both sides know, and the class of its response.

    `wait_ms` is how long the broker itself may hold the answer (Fetch, JoinGroup); drivers add it to their patience.
    `candidates` is how many nodes, this one included, could still give the same answer: the time that is left is for
    all of them. 0: others are waiting for their turn, whom a node that hangs must not cost all of the time.
    """

    endpoint: Endpoint
    request: Message
    version: int
    response: type[Message]
    wait_ms: int = 0
    candidates: int = 0


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next try; `reason` is what a user reads if the time runs out here."""

    seconds: float
    reason: str


T = TypeVar("T")
Answer: TypeAlias = "Any | KgctlError"
Steps: TypeAlias = Generator["Sequence[Call] | Pause", "list[Answer]", T]
