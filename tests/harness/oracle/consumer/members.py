"""Clients of the consumer protocol as a walk plays them: what they would send next, and what they learn from the answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from broker.protocol.errors import ErrorCode

Fields = dict[str, Any]
Owned = dict[str, list[int]]  # partitions by the symbol of a topic id
LEAVE, LEAVE_STATIC = -1, -2
# After these a client joins again.
LOST = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
REGEXES = ("%.*", "%a.*", "^%b.*$", "%(a|b).*", "%[ab][0-9]+", "(?i)%A.*", "%a", "%c.*", "%.*|%a.*", "%none.*")


class Member:
    """A client with a heartbeat that may be late in doing what it is told."""

    def __init__(self, rng: random.Random, number: int, member_id: str, group: str, timeouts_ms: Sequence[int]) -> None:
        self.name, self.group, self.chosen_id = f"c{number + 1}", group, member_id
        self.instance = rng.choice(("i1", "i2")) if rng.random() < 0.25 else None
        self.rack = "r1" if rng.random() < 0.1 else None
        self.timeout_ms = rng.choice(timeouts_ms)
        self.assignor = rng.choice(("uniform", "range")) if rng.random() < 0.3 else None
        self.version = 0 if rng.random() < 0.25 else 1
        # Older clients have no id of their own.
        self.member_id = "" if self.version == 0 and rng.random() < 0.1 else member_id
        self.topics: list[str] | None = None
        self.regex: str | None = None
        self.epoch = 0
        self.owned: Owned = {}
        self.target: Owned | None = None  # assigned, but not taken over yet
        self._told: Owned = {}

    def subscribe(self, rng: random.Random, topics: Sequence[str], with_regex: float) -> None:
        if self.version and rng.random() < with_regex:
            self.topics, self.regex = rng.choice((None, None, [])), rng.choice(REGEXES)
        else:
            self.topics, self.regex = sorted(rng.sample(topics, rng.randint(1, len(topics)))), None

    # ---- requests

    def next(self, rng: random.Random) -> Fields:
        """What a well-behaved client would send."""
        if self.epoch <= 0:
            return self.joining()
        if self.target is not None and rng.random() < 0.85:
            self.owned, self.target = self.target, None
        return self.full() if rng.random() < 0.12 else self.beat()

    def joining(self) -> Fields:
        self.owned, self.target, self._told = {}, None, {}
        return self._fields(0) | self._subscription() | {"topic_partitions": []}

    def beat(self, epoch: int | None = None) -> Fields:
        partitions = rows(self.owned) if self.owned != self._told else None
        self._told = self.owned
        return self._fields(self.epoch if epoch is None else epoch) | {"topic_partitions": partitions}

    def full(self) -> Fields:
        self._told = self.owned
        return self._fields(self.epoch) | self._subscription() | {"topic_partitions": rows(self.owned)}

    def leaving(self, epoch: int) -> Fields:
        return self._fields(epoch)

    def changed(self, rng: random.Random, topics: Sequence[str], with_regex: float) -> Fields:
        """A heartbeat that changes the subscription or the assignor."""
        fields = self.beat()
        if rng.random() < 0.2:
            self.assignor = rng.choice(("uniform", "range"))
            return fields | {"server_assignor": self.assignor}
        had_regex = self.regex is not None
        self.subscribe(rng, topics, with_regex)
        if self.regex is None and had_regex:
            self.regex = ""
        if self.version == 0:
            return fields | {"subscribed_topic_names": self.topics}
        return fields | {"subscribed_topic_names": self.topics, "subscribed_topic_regex": self.regex}

    def _fields(self, epoch: int) -> Fields:
        instance = {"instance_id": self.instance}
        return {"group_id": self.group, "member_id": self.member_id, "member_epoch": epoch} | instance

    def _subscription(self) -> Fields:
        fields: Fields = {
            "rebalance_timeout_ms": self.timeout_ms,
            "rack_id": self.rack,
            "server_assignor": self.assignor,
        }
        fields["subscribed_topic_names"] = self.topics
        if self.version:
            fields["subscribed_topic_regex"] = self.regex
        return fields

    # ---- answers

    def learn(self, request: Fields, answer: Fields) -> None:
        code = answer["error_code"]
        if code in LOST:
            self.epoch, self.owned, self.target, self._told = 0, {}, None, {}
        if code:
            return
        if request["member_epoch"] < 0:
            self.epoch, self.owned, self.target, self._told = 0, {}, None, {}
            if self.member_id.startswith("$"):
                self.member_id = ""
            return
        self.member_id, self.epoch = answer["member_id"], answer["member_epoch"]
        if answer["assignment"] is not None:
            self.target = {one["topic_id"]: one["partitions"] for one in answer["assignment"]["topic_partitions"]}


def rows(owned: Owned) -> list[Fields]:
    return [{"topic_id": topic, "partitions": partitions} for topic, partitions in sorted(owned.items())]
