"""Symbols in place of what a broker or a run chooses: $G1 a group, $A a topic, as its name and as its id, $M1 a member id
that the broker has made, $P1 a producer id. "%" in a text stands for the part that the names of its topics begin with.

Member ids that clients make are the same in every run. A topic that is created again gets the symbol $A#2 as its id.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import Any

from broker.protocol.wire_types import ZERO_UUID
from tests.harness.oracle.consumer import hashes
from tests.harness.oracle.consumer.topics import TopicSet

MANY_MEMBERS = tuple(hashes.named(f"m{number}-", number) for number in range(30))
MEMBERS = MANY_MEMBERS[:6]
# Ids that a broker makes come after those of clients, in the order in which they appear, and before this one.
GHOST = hashes.named("ghost", hashes.BUCKETS - 1)
PREFIX = "%"
TRANSACTIONAL_IDS = ("$T1", "$T2")
NO_SUCH_ID = bytes.fromhex("00000000000040008000000000000bad")
FIXED_IDS = {"none": ZERO_UUID, "bad": NO_SUCH_ID}
LITERAL = {GHOST, *MANY_MEMBERS}
UUID_FORM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


class Names:
    """The symbols of a walk and their values on this broker."""

    def __init__(self, topics: TopicSet, groups: Iterable[str], literals: int) -> None:
        """`literals`: how many ids of clients the walk uses."""
        tag = uuid.uuid4().hex[:8]
        self.prefix, self._literals = topics.prefix, literals
        self.topics = list(topics.names)
        self.live: dict[str, Any] = {
            symbol: f"{tag}-{symbol[1:]}" for symbol in (*groups, "$G0", *TRANSACTIONAL_IDS)
        } | topics.names
        self.symbol: dict[Any, str] = {live: symbol for symbol, live in self.live.items()}
        self.ids: dict[str, bytes] = FIXED_IDS | topics.ids
        self.symbol_of_id: dict[bytes, str] = {live: symbol for symbol, live in self.ids.items()}
        self.current_id: dict[str, bytes] = dict(topics.ids)

    # ---- what the broker chooses

    def bind(self, symbol: str, live: Any) -> None:
        self.live[symbol], self.symbol[live] = live, symbol

    def bind_id(self, topic: str, topic_id: bytes) -> None:
        count = sum(one.partition("#")[0] == topic for one in self.ids)
        symbol = f"{topic}#{count + 1}" if count else topic
        self.ids[symbol], self.symbol_of_id[topic_id] = topic_id, symbol
        self.current_id[topic] = topic_id

    def seen_ids(self) -> list[bytes]:
        """The ids of all topics of the walk, oldest first."""
        return [live for symbol, live in self.ids.items() if symbol not in FIXED_IDS]

    def made(self) -> list[str]:
        """The member ids that the broker has made, oldest first."""
        symbols = sorted((one for one in self.live if one.startswith("$M")), key=lambda one: int(one[2:]))
        return [self.live[one] for one in symbols]

    def are_in_order(self) -> bool:
        """Whether made ids come after those of clients in Java's hash tables, oldest first, and are sorted as texts as expected.

        The range assignor sorts members by their ids as texts. Ids begin with the name of a client or an instance, or are
        random; those shall come last.
        """
        made = self.made()
        places = [hashes.bucket(hashes.of_text(one)) for one in made]
        if places != sorted(set(places)) or not all(self._literals <= one < hashes.BUCKETS - 1 for one in places):
            return False
        stems = [(UUID_FORM.sub("", one) or "~" if UUID_FORM.search(one) else "~", at) for at, one in enumerate(made)]
        expected = sorted([*stems, *((one, -1) for one in LITERAL)])
        return sorted([*made, *LITERAL]) == [made[at] if at >= 0 else stem for stem, at in expected]

    # ---- requests

    def living(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.living(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.living(item) for item in value]
        if isinstance(value, str):
            return self.live[value] if value in self.live else value.replace(PREFIX, self.prefix)
        return value

    def id_of(self, symbol: str) -> bytes:
        return self.ids.get(symbol, NO_SUCH_ID)

    # ---- responses

    def text(self, live: str) -> str:
        if live in self.symbol:
            return self.symbol[live]
        for one, symbol in self.symbol.items():
            if isinstance(one, str) and one in live:
                live = live.replace(one, symbol)
        return live.replace(self.prefix, PREFIX)

    def member(self, live: str) -> str:
        return live if live in LITERAL or not live else str(self._named(live, "$M"))

    def producer(self, live: int) -> str | int:
        return self._named(live, "$P") if live >= 0 else live

    def topic_id(self, live: bytes) -> str:
        return self.symbol_of_id.get(live, "?")

    def _named(self, live: Any, prefix: str) -> str:
        if live not in self.symbol:
            taken = sum(symbol.startswith(prefix) for symbol in self.live)
            self.bind(f"{prefix}{taken + 1}", live)
        return self.symbol[live]
