"""Partitioners by name, and anybody's as `module:name`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from broker.light_named_tuples import NamedTuple
from kgctl.client.net.errors import KgctlError
from kgctl.client.producer.partitioner import partition_of_key


class Partitions(NamedTuple):
    """The partitions of a topic: they are numbered from 0, and the available ones have a leader."""

    total: int
    available: Sequence[int]


# Called with topic, key, value (as bytes) and partitions, while a lock is held: it must not block. None: a sticky partition.
Partitioner: TypeAlias = "Callable[[str, bytes | None, bytes | None, Partitions], int | None]"


def by_key(topic: str, key: bytes | None, value: bytes | None, partitions: Partitions) -> int | None:
    """Kafka's default: the murmur2 hash of the key decides; without a key, a sticky partition."""
    return None if key is None else partition_of_key(key, partitions.total)


def sticky(topic: str, key: bytes | None, value: bytes | None, partitions: Partitions) -> int | None:
    """Sticky partitions for all records, as with partitioner.ignore.keys."""
    return None


class RoundRobin:
    """Kafka's RoundRobinPartitioner: available partitions in turn, whatever the key is."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partitions: Partitions) -> int:
        turn = self._next.get(topic, 0)
        self._next[topic] = turn + 1
        available = partitions.available
        return available[turn % len(available)] if available else turn % partitions.total


BUILT_IN: dict[str, Callable[[], Partitioner]] = {
    "default": lambda: by_key,
    "sticky": lambda: sticky,
    "round-robin": RoundRobin,
}
_JAVA = {
    "org.apache.kafka.clients.producer.RoundRobinPartitioner": "round-robin",
    "org.apache.kafka.clients.producer.UniformStickyPartitioner": "sticky",
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner": "default",
}


class UnusablePartitioner(KgctlError):
    """The partitioner cannot be found, or answers with a partition that the topic does not have."""

    is_final = True
    name = "BAD_VALUE"


def load_partitioner(name: str) -> Partitioner:
    """A partitioner by name: `default`, `sticky`, `round-robin`, Java's class name of one, or `module:name`.

    `module:name` is a function with the arguments of `by_key`, or a class whose instances are called with them.
    """
    known = BUILT_IN.get(_JAVA.get(name, name))
    if known is not None:
        return known()
    module, colon, attribute = name.partition(":")
    if not colon:
        raise UnusablePartitioner(
            f"unknown partitioner {name!r}: use {', '.join(BUILT_IN)}, or module:name of a partitioner of your own"
        )
    try:
        found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        made = found() if isinstance(found, type) else found
    except Exception as error:
        raise UnusablePartitioner(f"cannot load partitioner {name!r}: {type(error).__name__}: {error}") from error
    if not callable(made):
        raise UnusablePartitioner(f"partitioner {name!r} cannot be called")
    partitioner: Partitioner = made
    return partitioner
