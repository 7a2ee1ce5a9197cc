"""Clients of the classic protocol as a walk plays them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from broker.protocol.errors import ErrorCode
from tests.harness.oracle.consumer import embedded

Fields = dict[str, Any]
Request = tuple[str, int, Fields]  # name, version, fields
JOIN_VERSIONS, SYNC_VERSIONS, HEARTBEAT_VERSIONS, LEAVE_VERSIONS = (4, 5, 7, 9), (3, 4, 5), (3, 4), (3, 5)
REJOIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)


class ClassicMember:
    """A client that joins, syncs, and sends heartbeats. As a leader it assigns every partition to the members in turn."""

    def __init__(
        self,
        rng: random.Random,
        number: int,
        member_id: str,
        group: str,
        protocols: Sequence[str],
        timeouts_ms: tuple[int, Sequence[int]],
    ) -> None:
        self.name, self.group = f"c{number + 1}", group
        # In a consumer group, a client may join with an id of its own.
        self.first_id = member_id if rng.random() < 0.3 else ""
        self.instance = rng.choice(("i1", "i2", "i3")) if rng.random() < 0.2 else None
        self.session_ms, self.timeout_ms = timeouts_ms[0], rng.choice(timeouts_ms[1])
        self.protocols = list(protocols)
        self.version = rng.choice((0, 1, 2, 3))
        self.topics: list[str] = []
        self.counts: dict[str, int] = {}
        self._forget()

    def _forget(self) -> None:
        self.member_id = self.first_id
        self.generation, self.is_joined, self.is_synced, self.is_waiting = -1, False, False, False
        self.owned: dict[str, list[int]] = {}
        self.protocol = ""
        self.others: list[Fields] = []

    def subscribe(self, rng: random.Random, topics: Sequence[str]) -> None:
        self.topics = sorted(rng.sample(topics, rng.randint(1, len(topics))))

    # ---- requests

    def next(self, rng: random.Random) -> Request:
        if not self.is_joined:
            return self.joining(rng)
        if not self.is_synced:
            return self.syncing(rng)
        fields = {"group_id": self.group, "generation_id": self.generation, "member_id": self.member_id}
        return "Heartbeat", rng.choice(HEARTBEAT_VERSIONS), fields | {"group_instance_id": self.instance}

    def joining(self, rng: random.Random) -> Request:
        version = rng.choice(JOIN_VERSIONS if self.instance is None else JOIN_VERSIONS[1:])
        metadata = embedded.subscription(self.version, self.topics, self.owned, self.generation)
        fields = {
            "group_id": self.group,
            "session_timeout_ms": self.session_ms,
            "rebalance_timeout_ms": self.timeout_ms,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocols": [{"name": name, "metadata": metadata} for name in self.protocols],
        }
        return "JoinGroup", version, fields

    def syncing(self, rng: random.Random) -> Request:
        fields = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocol_name": self.protocol,
            "assignments": self._assignments(),
        }
        return "SyncGroup", rng.choice(SYNC_VERSIONS), fields

    def leaving(self, rng: random.Random) -> Request:
        one = {"member_id": self.member_id, "group_instance_id": self.instance}
        return "LeaveGroup", rng.choice(LEAVE_VERSIONS), {"group_id": self.group, "members": [one]}

    def _assignments(self) -> list[Fields]:
        shares: dict[str, dict[str, list[int]]] = {one["member_id"]: {} for one in self.others}
        ids = sorted(shares)
        place = 0
        for topic, count in sorted(self.counts.items()):
            for partition in range(count if ids else 0):
                shares[ids[place % len(ids)]].setdefault(topic, []).append(partition)
                place += 1
        return [{"member_id": one, "assignment": embedded.assignment(1, shares[one])} for one in ids]

    # ---- answers

    def learn(self, api: str, answer: Fields) -> None:
        self.is_waiting = False
        code = answer["error_code"]
        if api == "LeaveGroup":
            self._forget()
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self._forget()
            self.first_id = self.member_id = ""
        elif api == "JoinGroup" and code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer["member_id"]
        elif code in REJOIN or code:
            self.is_joined = self.is_synced = False
        elif api == "JoinGroup":
            self.member_id, self.generation = answer["member_id"], answer["generation_id"]
            self.protocol, self.others = answer["protocol_name"], answer["members"]
            self.is_joined, self.is_synced = True, False
        elif api == "SyncGroup":
            self.is_synced = True
            self.owned = _assigned(answer["assignment"])


def _assigned(text: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = json.loads(text)["assigned"] if text.startswith("{") else {}
    return found
