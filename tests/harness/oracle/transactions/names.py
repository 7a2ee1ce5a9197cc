"""Symbols in place of what a broker or a run chooses: $T1 a transactional id, $P1 a producer id, $A a topic, $A.id its id,
$G1 a group, @$G1 its partition of __consumer_offsets, $M1 a member.

Names of topics, groups and transactional ids are known from the start; producer and member ids get the next symbol when
they first appear. Times of a walk are written relative to its start; the times of the broker's clock are "now".
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from typing import Any

from broker.protocol.offsets_topic import partition_for

# The records of a walk are this much older than the walk, so that their times differ from those of the broker.
AGE_MS = 3_600_000
BOGUS_PRODUCER = 987_654_321_000  # an id that no broker gives out in a test
NOW = "now"


class Names:
    """The symbols of a walk and their values on this broker."""

    def __init__(self, topics: Iterable[str], groups: Iterable[str], transactional_ids: Iterable[str]) -> None:
        groups = list(groups)
        tag = _tag(groups)
        self.live: dict[str, Any] = {
            symbol: f"walk-{tag}-{symbol[1:]}" for symbol in (*topics, *groups, *transactional_ids, "$T0", "$G0")
        }
        self.symbol: dict[Any, str] = {live: symbol for symbol, live in self.live.items()}
        self._group_of = {partition_for(self.live[group]): f"@{group}" for group in (*groups, "$G0")}
        self.live |= {symbol: partition for partition, symbol in self._group_of.items()}
        self.started_ms = int(time.time() * 1000) - AGE_MS

    def bind(self, symbol: str, live: Any) -> None:
        self.live[symbol], self.symbol[live] = live, symbol

    def living(self, value: Any) -> Any:
        """A request with the values of this broker."""
        if isinstance(value, dict):
            return {key: self.living(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.living(item) for item in value]
        if isinstance(value, str) and value.startswith("+"):
            return self.started_ms + int(value)
        return self.live.get(value, value) if isinstance(value, str) else value

    def producer(self, live: int) -> str | int:
        return self._named(live, "$P") if live >= 0 and live != BOGUS_PRODUCER else live

    def member(self, live: str) -> str:
        return str(self._named(live, "$M")) if live and not live.startswith("ghost") else live

    def time(self, live: int) -> str | int:
        if live <= 0:
            return live
        since = live - self.started_ms
        return f"+{since}" if since < AGE_MS // 2 else NOW

    def offsets_partition(self, live: int) -> str | int:
        return self._group_of.get(live, live)

    def text(self, live: str) -> str:
        return self.symbol.get(live, live)

    def _named(self, live: Any, prefix: str) -> str:
        if live not in self.symbol:
            taken = sum(symbol.startswith(prefix) for symbol in self.live)
            self.bind(f"{prefix}{taken + 1}", live)
        return self.symbol[live]


def _tag(groups: list[str]) -> str:
    """A random tag with which the groups have different partitions of __consumer_offsets."""
    while True:
        tag = uuid.uuid4().hex[:8]
        names = [f"walk-{tag}-{symbol[1:]}" for symbol in (*groups, "$G0")]
        # The group without a name has partition 0.
        if len({0, *map(partition_for, names)}) == len(names) + 1:
            return tag
