"""The interface of a core: a pure state machine that takes requests and the passing of time, and returns effects.

A core reads no clock, draws no randomness and performs no I/O; all three are arguments. Its hard state is what the log holds
and changes only in `apply`. Its soft state (parked requests, timers, unfinished work) changes in steps and is lost in a restart.

A runner drives a core:

- recovery: `apply` every stored state record, then `resume` once;
- running: `handle` each request, and `advance` when `wake_at_ms` has come.

The runner performs the effects of one step completely before it takes the next step, and in this order:

1. append the state records and events (and whatever else the effects of a particular core name) to the log;
2. flush: one commit makes durable everything that was appended so far;
3. send the replies. A later reply, even of a step without state records, also waits until everything that was appended
   before it is durable.

The core has applied its state records when a step returns, so nothing can be undone: if an append or a flush fails, no
further reply is sent and the process stops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from broker.light_dataclasses import dataclass, field
from broker.light_named_tuples import NamedTuple
from broker.protocol.wire_types import Message
from broker.timers import Timers

RecordT = TypeVar("RecordT")  # its state records
EventT = TypeVar("EventT")


class BrokenInvariant(Exception):
    """The core contradicts itself; its state can no longer be trusted, and the process must stop."""


class RequestContext(NamedTuple):
    """Who sent a request and when.

    `ticket` is the handle of its one reply. `client_host` has Kafka's form, "/127.0.0.1". `wall_ms` is the time since 1970.
    """

    ticket: int
    api_version: int
    client_id: str
    client_host: str
    principal: str
    wall_ms: int


class Parked(NamedTuple):
    """The ticket of a request that a later step answers, and the version in which it was asked."""

    ticket: int
    api_version: int


class Reply(NamedTuple):
    """The answer to the request with this ticket. A ticket gets at most one. `is_gradual`: it holds a `Gradual`."""

    ticket: int
    response: Message
    is_gradual: bool = False


@dataclass(slots=True)
class Effects(Generic[RecordT, EventT]):
    """What a step asks of the runner; the module docstring fixes the order.

    `state_records` are in the order in which the core applied them. `events` report what happened and become durable in the same
    flush. `wake_at_ms` is the one deadline of the whole core, on the monotonic clock: call `advance` no later than that; None
    if nothing is due. `unanswered` are the tickets of parked requests that will get no answer. A core that also appends elsewhere
    (transaction markers in user partitions) adds that in a subclass.
    """

    state_records: list[RecordT]
    replies: list[Reply]
    wake_at_ms: int | None
    events: list[EventT] = field(default_factory=list)
    unanswered: list[int] = field(default_factory=list)


class Core(Protocol[RecordT, EventT]):
    """What a runner uses of a core. `now_ms` is monotonic and only for deadlines; `wall_ms` is for timestamps and expiry."""

    def apply(self, state_record: RecordT, /) -> None:
        """Apply a stored state record to the hard state. A step applies the records that it persists through the same code."""

    def resume(self, now_ms: int, wall_ms: int) -> Effects[RecordT, EventT]:
        """Start running after the last stored state record: restore soft state and arm timers."""
        ...

    def handle(self, request: Message, context: RequestContext, now_ms: int) -> Effects[RecordT, EventT]:
        """Handle a request. The reply is in these effects or, if the request parks, in those of a later step."""
        ...

    def advance(self, now_ms: int, wall_ms: int) -> Effects[RecordT, EventT]:
        """Run every timer that is due."""
        ...


class Step(Generic[RecordT, EventT]):
    """One step in progress: the time, the request if there is one, and the effects so far. Each core derives its own."""

    __slots__ = ("_apply", "context", "events", "now_ms", "replies", "state_records", "timers", "unanswered", "wall_ms")

    def __init__(
        self,
        apply: Callable[[RecordT], None],
        timers: Timers,
        now_ms: int,
        wall_ms: int,
        context: RequestContext | None = None,
    ) -> None:
        self._apply = apply
        self.timers = timers
        self.now_ms = now_ms
        self.wall_ms = wall_ms
        self.context = context
        self.state_records: list[RecordT] = []
        self.replies: list[Reply] = []
        self.events: list[EventT] = []
        self.unanswered: list[int] = []

    def effects(self) -> Effects[RecordT, EventT]:
        return Effects(self.state_records, self.replies, self.timers.wake_at(), self.events, self.unanswered)

    @property
    def request(self) -> RequestContext:
        """The context of the request that this step handles."""
        assert self.context is not None, "a timer has no request"
        return self.context

    def persist(self, state_record: RecordT) -> None:
        """Change hard state: in memory now, durably before any reply of this step."""
        self.state_records.append(state_record)
        self._apply(state_record)

    def reply(self, response: Message, *, is_gradual: bool = False) -> None:
        """Answer the request of this step."""
        self.replies.append(Reply(self.request.ticket, response, is_gradual))

    def park(self) -> Parked:
        """Leave the request of this step to a later step, which answers it with `answer`."""
        return Parked(self.request.ticket, self.request.api_version)

    def answer(self, parked: Parked, response: Message) -> None:
        """Answer a request that an earlier step parked."""
        self.replies.append(Reply(parked.ticket, response))

    def never_answer(self, parked: Parked | None) -> None:
        """Give up a parked request, if there is one, without an answer."""
        if parked is not None:
            self.unanswered.append(parked.ticket)
