"""The requests of members, and which of them a well-behaved client would send next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.harness.oracle.participants import Participant, Step
from tests.harness.oracle.requests import NO_TOPIC, TOPICS

if TYPE_CHECKING:
    from tests.harness.oracle.generate import Walk

Move = Callable[[str], "Step | None"]
ADMIN = "admin"
METADATA_LIMIT = 4096  # of a committed offset
INSTANCES_SINCE = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3, "OffsetCommit": 7}


class Moves:
    """Requests that a walk can choose from."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.participants, self.rng = walk, walk.participants, walk.rng

    def step(self, group: str) -> Step | None:
        raise NotImplementedError

    def join(self, participant: Participant, version: int | None = None, **changed: Any) -> Step:
        if version is None:
            version = self.walk.version("JoinGroup", INSTANCES_SINCE["JoinGroup"] if participant.instance else 0)
        fields = {
            "session_timeout_ms": self.rng.choice((60_000, 90_000, 300_000)),
            "rebalance_timeout_ms": self.rng.choice((60_000, 120_000, 600_000)),
            "protocol_type": participant.protocol_type,
            "protocols": participant.offers,
            "reason": self.rng.choice((None, "", "walking")),
        }
        return self.walk.step(participant, "JoinGroup", version, **participant.identity() | fields | changed)

    def rejoin(self, participant: Participant) -> Step:
        if self.rng.random() < 0.3:
            participant.offers = self.participants.other_offers(participant)
        return self.join(participant)

    def join_as_newcomer(self, group: str) -> Step:
        waiting = self.participants.outside(group)
        participant = (
            self.rng.choice(waiting) if waiting and self.rng.random() < 0.8 else self.participants.newcomer(group)
        )
        two_steps = not participant.instance and not self.participants.old_clients and self.rng.random() < 0.6
        return self.join(participant, self.rng.randint(4, 9) if two_steps else None)

    def replace_static(self, group: str) -> Step | None:
        """Another process starts with the instance id of a member."""
        statics = [one for one in self.participants.members(group) if one.instance]
        if not statics:
            return None
        old = self.rng.choice(statics)
        participant = self.participants.newcomer(group, old.instance)
        participant.offers = old.offers if self.rng.random() < 0.6 else self.participants.other_offers(old)
        return self.join(participant)

    def sync(self, participant: Participant, identity: dict[str, Any] | None = None) -> Step:
        identity = identity or participant.identity()
        least = self._least("SyncGroup", identity)
        names: dict[str, Any] = {"protocol_type": participant.protocol_type, "protocol_name": participant.protocol}
        bent: dict[str, Any] = self.walk.weighed(
            (15, {}),
            (1, dict.fromkeys(names)),
            (0.5, {"protocol_type": None}),
            (0.5, {"protocol_name": None}),
            (0.7, {"protocol_type": "other"}),
            (0.7, {"protocol_name": "other"}),
        )
        version = self.walk.version("SyncGroup", 5 if bent and self.rng.random() < 0.8 else least)
        shares = self._shares(participant)
        return self.walk.step(participant, "SyncGroup", version, assignments=shares, **identity | names | bent)

    def _shares(self, participant: Participant) -> list[dict[str, str]]:
        if self.rng.random() > (0.92 if participant.leads else 0.12):
            return []
        ids = sorted(self.participants.member_ids(participant.group))
        shares = [{"member_id": one, "assignment": f"share of {one[1:]} at {len(self.walk.asked)}"} for one in ids]
        flaw = self.walk.weighed(
            (6, ""), (1, "one is missing"), (1, "a stranger"), (0.6, "none"), (0.5, "an empty one")
        )
        if flaw == "one is missing" and shares:
            shares.remove(self.rng.choice(shares))
        elif flaw == "a stranger":
            shares.append({"member_id": "ghost", "assignment": "boo"})
        elif flaw == "an empty one" and shares:
            self.rng.choice(shares)["assignment"] = ""
        return [] if flaw == "none" else shares

    def heartbeat(self, participant: Participant, identity: dict[str, Any] | None = None) -> Step:
        identity = identity or participant.identity()
        return self.walk.step(
            participant, "Heartbeat", self.walk.version("Heartbeat", self._least("Heartbeat", identity)), **identity
        )

    def leave(self, participant: Participant, *identity: dict[str, Any]) -> Step:
        identity = identity or (participant.identity(),)
        leavers: list[dict[str, Any]] = []
        seen: set[str] = set()
        for one in identity:
            names = {one["member_id"], one["group_instance_id"]} - {"", None}
            if not names & seen:  # Kafka's answer to a repeated name varies
                leavers.append({**one, "reason": self.rng.choice((None, "", "bye"))})
            seen |= names
        version = self.walk.version("LeaveGroup", 3 if len(leavers) != 1 else self._least("LeaveGroup", identity[0]))
        if version >= 3 and leavers and leavers[0]["group_instance_id"] and self.rng.random() < 0.3:
            leavers[0]["member_id"] = ""  # as an admin removes a static member
        group, member_id = identity[0]["group_id"], identity[0]["member_id"]
        return self.walk.step(participant, "LeaveGroup", version, group_id=group, member_id=member_id, members=leavers)

    def commit(self, participant: Participant, identity: dict[str, Any] | None = None) -> Step:
        identity = identity or participant.identity()
        group, generation = identity["group_id"], identity["generation_id"]
        topics = self._offsets()
        if group == "":
            generation = max(generation, 0)  # otherwise all walks would share the group ""
        elif generation < 0 and self.participants.state(group) == "Dead":
            # If all its metadata were too long, Kafka would create a group that only some requests see.
            for partition in (partition for topic in topics for partition in topic["partitions"]):
                partition["committed_metadata"] = "short"
        fields = identity | {
            "generation_id_or_member_epoch": generation,
            "retention_time_ms": self.rng.choice((-1, -1, 86_400_000)),
            "topics": topics,
        }
        return self.walk.step(
            participant,
            "OffsetCommit",
            self.walk.version("OffsetCommit", self._least("OffsetCommit", identity)),
            **fields,
        )

    def _offsets(self) -> list[dict[str, Any]]:
        if self.rng.random() < 0.02:
            return []
        weighed = ["walk-a", "walk-a", "walk-a", "walk-b", "walk-b", NO_TOPIC]
        names = sorted({self.rng.choice(weighed) for _ in range(self.rng.choice((1, 1, 2)))})
        return [{"name": name, "partitions": [self._offset(one) for one in self._partitions(name)]} for name in names]

    def _partitions(self, topic: str) -> list[int]:
        """Some partitions of the topic, sometimes with one that does not exist."""
        there = TOPICS.get(topic, 1) + (self.rng.random() < 0.2)
        return self.rng.sample(range(there), self.rng.randint(1, min(2, there)))

    def _offset(self, partition: int) -> dict[str, Any]:
        long = METADATA_LIMIT
        metadata = self.walk.weighed(
            (4, ""), (2, "note"), (1, None), (0.7, "x" * long), (1.5, "x" * (long + 1)), (0.3, "é" * long)
        )
        return {
            "partition_index": partition,
            "committed_offset": self.rng.choice((0, 7, len(self.walk.asked), 1 << 40)),
            "committed_leader_epoch": self.rng.choice((-1, -1, 0, 3)),
            "committed_metadata": metadata,
        }

    def _least(self, api: str, identity: dict[str, Any]) -> int:
        """Usually a version that has the instance id."""
        return INSTANCES_SINCE[api] if identity["group_instance_id"] and self.rng.random() < 0.9 else 0


class Onward(Moves):
    """The requests that a well-behaved client would send next."""

    def step(self, group: str) -> Step | None:
        by_state: dict[str, Move] = {
            "PreparingRebalance": self._join_phase,
            "CompletingRebalance": self._sync_phase,
            "Stable": self._at_work,
        }
        return by_state.get(self.participants.state(group), self._no_move)(group)

    def _join_phase(self, group: str) -> Step:
        with_id = [one for one in self.participants.with_id_only(group) if not one.unanswered]
        if with_id and self.rng.random() < 0.5:
            return self.join(self.rng.choice(with_id))
        late = [one for one in self.participants.members(group) if not one.unanswered]
        return self.rejoin(self.rng.choice(late)) if late else self.join_as_newcomer(group)

    def _sync_phase(self, group: str) -> Step:
        members = self.participants.members(group)
        leaders = [one for one in members if one.leads]
        if leaders and self.rng.random() < (0.25 if self.walk.lingers_in == "CompletingRebalance" else 0.55):
            return self.sync(leaders[0])
        return self.sync(self.rng.choice(members)) if members else self.join_as_newcomer(group)

    def _no_move(self, group: str) -> Step | None:
        if self.participants.state(group) == "Empty" and self.walk.lingers_in == "Dead" and self.rng.random() < 0.4:
            return self.walk.step(ADMIN, "DeleteGroups", self.walk.version("DeleteGroups"), groups_names=[group])
        return self._grow(group)

    def _grow(self, group: str) -> Step:
        with_id = [one for one in self.participants.with_id_only(group) if not one.unanswered]
        return (
            self.join(self.rng.choice(with_id)) if with_id and self.rng.random() < 0.7 else self.join_as_newcomer(group)
        )

    def _at_work(self, group: str) -> Step | None:
        members = self.participants.members(group)
        if not members or (len(members) < self.walk.size and self.rng.random() < 0.6):
            return self._grow(group)
        participant = self.rng.choice(members)
        if self.walk.lingers_in in ("Empty", "Dead") and self.rng.random() < 0.4:
            return self.leave(participant)
        moves: list[tuple[float, Callable[[], Step | None]]] = [
            (2, lambda: self.heartbeat(participant)),
            (2, lambda: self.commit(participant)),
            (1.5, lambda: self.rejoin(participant)),
            (1, lambda: self.leave(participant)),
            (1, lambda: self.sync(participant)),
            (0.7, lambda: self.join_as_newcomer(group)),
            (2 if any(one.instance for one in members) else 0, lambda: self.replace_static(group)),
        ]
        made: Step | None = self.walk.weighed(*moves)()
        return made
