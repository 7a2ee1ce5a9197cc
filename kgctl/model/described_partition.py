"""What metadata says about one partition."""

from __future__ import annotations

from broker.light_named_tuples import NamedTuple


class PartitionInfo(NamedTuple):
    """`leader` is a node id, or None while there is no leader; the others are node ids, too."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...] = ()
    in_sync_replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
