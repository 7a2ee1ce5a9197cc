"""Producers that commit offsets of groups in transactions: what they send next, and what they learn from the answers.

They make no mistakes with their transactions; those that others do are in the walks of transactions. What they say of members may be wrong.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from broker.protocol.errors import ErrorCode
from tests.harness.oracle.consumer.forms import codes

Fields = dict[str, Any]
Request = tuple[str, int, Fields]  # name, version, fields
TRANSACTION_MS = 60_000


class Commit(NamedTuple):
    """Whose offsets are committed."""

    group: str
    member_id: str
    epoch: int
    instance: str | None
    topics: list[Fields]


class Producer:
    def __init__(self, rng: random.Random, number: int) -> None:
        self.name, self.transactional_id = f"p{number}", f"$T{number}"
        # Newer ones add groups to their transactions implicitly (KIP-890).
        self.is_new = rng.random() < 0.7
        self.producer_id: str | None = None
        self.epoch = -1
        self.groups: set[str] = set()
        self._asked: str | None = None  # a group

    # ---- requests

    def next(self, rng: random.Random, commit: Commit) -> Request:
        if self.producer_id is None or rng.random() < 0.04:
            return "InitProducerId", 5, self._init()
        if self.groups and rng.random() < 0.35:
            return "EndTxn", 5 if self.is_new else 4, self._identity() | {"committed": rng.random() < 0.6}
        self._asked = commit.group
        if not self.is_new and commit.group not in self.groups:
            return "AddOffsetsToTxn", 3, self._identity() | {"group_id": commit.group}
        fields = {
            "group_id": commit.group,
            "generation_id": commit.epoch,
            "member_id": commit.member_id,
            "group_instance_id": commit.instance,
            "topics": commit.topics,
        }
        return "TxnOffsetCommit", 5 if self.is_new else rng.choice((3, 4)), self._identity() | fields

    def _init(self) -> Fields:
        return {
            "transactional_id": self.transactional_id,
            "transaction_timeout_ms": TRANSACTION_MS,
            "producer_id": -1,
            "producer_epoch": -1,
        }

    def _identity(self) -> Fields:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    # ---- answers

    def learn(self, api: str, version: int, answer: Fields) -> None:
        if api == "TxnOffsetCommit":
            # A refused one may have added the group, too, but not one of which no topic exists.
            if self._asked is not None and codes(answer) - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
                self.groups.add(self._asked)
            return
        if answer["error_code"]:
            self.producer_id = None
            return
        if api == "AddOffsetsToTxn" and self._asked is not None:
            self.groups.add(self._asked)
        elif api == "InitProducerId" or (api == "EndTxn" and version >= 5):
            self.producer_id, self.epoch = answer["producer_id"], answer["producer_epoch"]
        if api in ("InitProducerId", "EndTxn"):
            self.groups.clear()
