"""Declaration: everything the server knows about one kind of request besides its message."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Answerable, Exchange
    from broker.server.guards import Guard
    from broker.server.resources import Resources

# The most entries that the arrays of one request may hold together. It bounds how long a request delays other clients and how
# much memory it grows to. Ten thousand groups with one topic and one partition each stay within it.
MAX_ENTRIES = 30_000
# The same for requests that spend more time on each entry.
FEWER_ENTRIES = 10_000


# Returns the answer, or None and answers the exchange later.
Handler = Callable[[Any, "Exchange", "Resources"], "Message | None"]
# Does the same for one slice of a request.
SliceHandler = Callable[[Any, "Answerable"], "Message | None"]
# Looks at the whole request before its first slice, and returns the handler of its slices. It runs before the guard, which checks
# each slice: it must not change anything.
SlicedHandler = Callable[[Any, "Exchange", "Resources"], SliceHandler]


class Slicing(NamedTuple):
    """How a request is cut: the array fields of request and response with independent entries, and entries per slice.

    `key` returns equal values for two entries that ask for the same.
    """

    asked: str
    answered: str
    key: Callable[[Any], Hashable]
    size: int


@dataclass(frozen=True, slots=True)
class Declaration:
    """One kind of request that the broker serves.

    `guard` requires what Kafka requires of its sender. `loads` names the groups whose committed offsets must be in memory before it runs.
    """

    request: type[Message]
    handle: Handler | SlicedHandler
    guard: Guard
    slicing: Slicing | None = None
    loads: Callable[[Any], Sequence[str]] | None = None
    max_entries: int = MAX_ENTRIES
