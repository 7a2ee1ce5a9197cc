"""Declaration: everything the server knows about one kind of request besides its message."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources

# The most entries that the arrays of one request may hold together. It bounds how long a request delays other clients and how
# much memory it grows to. Ten thousand groups with one topic and one partition each stay within it.
MAX_ENTRIES = 30_000
# The same for requests that spend more time on each entry.
FEWER_ENTRIES = 10_000


class Operation(IntEnum):
    """Kafka's ACL operations, with its numbers."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Resource(Enum):
    """Kafka's types of resources that ACLs protect."""

    CLUSTER = "Cluster"
    TOPIC = "Topic"
    GROUP = "Group"
    TRANSACTIONAL_ID = "TransactionalId"


class Acl(NamedTuple):
    """An operation on a type of resource."""

    operation: Operation
    resource: Resource


# Returns the answer, or None and answers the exchange later.
Handler = Callable[[Any, "Exchange", "Resources"], "Message | None"]
# Does the same for one slice of a request.
SliceHandler = Callable[[Any, "Answerable"], "Message | None"]
# Looks at the whole request before its first slice, and returns the handler of its slices.
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

    `acls` are the operations that Kafka requires for it; which of them apply depends on what the request names. Without any the
    request is open to every client. `loads` names the groups whose committed offsets must be in memory before it runs.
    """

    request: type[Message]
    handle: Handler | SlicedHandler
    acls: tuple[Acl, ...]
    slicing: Slicing | None = None
    loads: Callable[[Any], Sequence[str]] | None = None
    max_entries: int = MAX_ENTRIES
