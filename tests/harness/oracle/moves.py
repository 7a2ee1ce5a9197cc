"""The requests of members, and which of them a well-behaved client would send next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.harness.oracle.people import Person, Step
from tests.harness.oracle.requests import NO_TOPIC, TOPICS

if TYPE_CHECKING:
    from tests.harness.oracle.generate import Walk

Move = Callable[[str], "Step | None"]
ADMIN = "admin"
METADATA_LIMIT = 4096  # of a committed offset
INSTANCES_SINCE = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3, "OffsetCommit": 7}


class Moves:
    """Requests that a walk may choose from."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.people, self.chance = walk, walk.people, walk.chance

    def step(self, group: str) -> Step | None:
        raise NotImplementedError

    def join(self, person: Person, version: int | None = None, **changed: Any) -> Step:
        if version is None:
            version = self.walk.version("JoinGroup", INSTANCES_SINCE["JoinGroup"] if person.instance else 0)
        fields = {
            "session_timeout_ms": self.chance.choice((60_000, 90_000, 300_000)),
            "rebalance_timeout_ms": self.chance.choice((60_000, 120_000, 600_000)),
            "protocol_type": person.protocol_type,
            "protocols": person.offers,
            "reason": self.chance.choice((None, "", "walking")),
        }
        return self.walk.step(person, "JoinGroup", version, **person.names_itself() | fields | changed)

    def rejoin(self, person: Person) -> Step:
        if self.chance.random() < 0.3:
            person.offers = self.people.other_offers(person)
        return self.join(person)

    def join_as_newcomer(self, group: str) -> Step:
        waiting = self.people.outside(group)
        person = self.chance.choice(waiting) if waiting and self.chance.random() < 0.8 else self.people.newcomer(group)
        two_steps = not person.instance and not self.people.old_clients and self.chance.random() < 0.6
        return self.join(person, self.chance.randint(4, 9) if two_steps else None)

    def replace_static(self, group: str) -> Step | None:
        """Another process comes under the instance id of a member."""
        statics = [one for one in self.people.members(group) if one.instance]
        if not statics:
            return None
        old = self.chance.choice(statics)
        person = self.people.newcomer(group, old.instance)
        person.offers = old.offers if self.chance.random() < 0.6 else self.people.other_offers(old)
        return self.join(person)

    def sync(self, person: Person, said: dict[str, Any] | None = None) -> Step:
        said = said or person.names_itself()
        least = self._least("SyncGroup", said)
        names: dict[str, Any] = {"protocol_type": person.protocol_type, "protocol_name": person.protocol}
        bent: dict[str, Any] = self.walk.weighed(
            (15, {}),
            (1, dict.fromkeys(names)),
            (0.5, {"protocol_type": None}),
            (0.5, {"protocol_name": None}),
            (0.7, {"protocol_type": "other"}),
            (0.7, {"protocol_name": "other"}),
        )
        version = self.walk.version("SyncGroup", 5 if bent and self.chance.random() < 0.8 else least)
        shares = self._shares(person)
        return self.walk.step(person, "SyncGroup", version, assignments=shares, **said | names | bent)

    def _shares(self, person: Person) -> list[dict[str, str]]:
        if self.chance.random() > (0.92 if person.leads else 0.12):
            return []
        ids = sorted(self.people.member_ids(person.group))
        shares = [{"member_id": one, "assignment": f"share of {one[1:]} at {len(self.walk.asked)}"} for one in ids]
        flaw = self.walk.weighed(
            (6, ""), (1, "one is missing"), (1, "a stranger"), (0.6, "none"), (0.5, "an empty one")
        )
        if flaw == "one is missing" and shares:
            shares.remove(self.chance.choice(shares))
        elif flaw == "a stranger":
            shares.append({"member_id": "ghost", "assignment": "boo"})
        elif flaw == "an empty one" and shares:
            self.chance.choice(shares)["assignment"] = ""
        return [] if flaw == "none" else shares

    def heartbeat(self, person: Person, said: dict[str, Any] | None = None) -> Step:
        said = said or person.names_itself()
        return self.walk.step(
            person, "Heartbeat", self.walk.version("Heartbeat", self._least("Heartbeat", said)), **said
        )

    def leave(self, person: Person, *said: dict[str, Any]) -> Step:
        said = said or (person.names_itself(),)
        leavers: list[dict[str, Any]] = []
        seen: set[str] = set()
        for one in said:
            names = {one["member_id"], one["group_instance_id"]} - {"", None}
            if not names & seen:  # what Kafka answers to a name said twice is not the same each time
                leavers.append({**one, "reason": self.chance.choice((None, "", "bye"))})
            seen |= names
        version = self.walk.version("LeaveGroup", 3 if len(leavers) != 1 else self._least("LeaveGroup", said[0]))
        if version >= 3 and leavers and leavers[0]["group_instance_id"] and self.chance.random() < 0.3:
            leavers[0]["member_id"] = ""  # as an admin removes a static member
        group, member_id = said[0]["group_id"], said[0]["member_id"]
        return self.walk.step(person, "LeaveGroup", version, group_id=group, member_id=member_id, members=leavers)

    def commit(self, person: Person, said: dict[str, Any] | None = None) -> Step:
        said = said or person.names_itself()
        group, generation = said["group_id"], said["generation_id"]
        topics = self._offsets()
        if group == "":
            generation = max(generation, 0)  # else the group "" would be made, which all walks share
        elif generation < 0 and self.people.state(group) == "Dead":
            # Were all its metadata too long, Kafka would make a group that only some requests see.
            for partition in (partition for topic in topics for partition in topic["partitions"]):
                partition["committed_metadata"] = "short"
        fields = said | {
            "generation_id_or_member_epoch": generation,
            "retention_time_ms": self.chance.choice((-1, -1, 86_400_000)),
            "topics": topics,
        }
        return self.walk.step(
            person, "OffsetCommit", self.walk.version("OffsetCommit", self._least("OffsetCommit", said)), **fields
        )

    def _offsets(self) -> list[dict[str, Any]]:
        if self.chance.random() < 0.02:
            return []
        weighed = ["walk-a", "walk-a", "walk-a", "walk-b", "walk-b", NO_TOPIC]
        names = sorted({self.chance.choice(weighed) for _ in range(self.chance.choice((1, 1, 2)))})
        return [{"name": name, "partitions": [self._offset(one) for one in self._partitions(name)]} for name in names]

    def _partitions(self, topic: str) -> list[int]:
        """Some of the topic's; sometimes with the one behind its last."""
        there = TOPICS.get(topic, 1) + (self.chance.random() < 0.2)
        return self.chance.sample(range(there), self.chance.randint(1, min(2, there)))

    def _offset(self, partition: int) -> dict[str, Any]:
        long = METADATA_LIMIT
        metadata = self.walk.weighed(
            (4, ""), (2, "note"), (1, None), (0.7, "x" * long), (1.5, "x" * (long + 1)), (0.3, "é" * long)
        )
        return {
            "partition_index": partition,
            "committed_offset": self.chance.choice((0, 7, len(self.walk.asked), 1 << 40)),
            "committed_leader_epoch": self.chance.choice((-1, -1, 0, 3)),
            "committed_metadata": metadata,
        }

    def _least(self, api: str, said: dict[str, Any]) -> int:
        """A version that can say the instance id, mostly."""
        return INSTANCES_SINCE[api] if said["group_instance_id"] and self.chance.random() < 0.9 else 0


class Onward(Moves):
    """What a well-behaved client would do next."""

    def step(self, group: str) -> Step | None:
        by_state: dict[str, Move] = {
            "PreparingRebalance": self._join_phase,
            "CompletingRebalance": self._sync_phase,
            "Stable": self._at_work,
        }
        return by_state.get(self.people.state(group), self._nobody_there)(group)

    def _join_phase(self, group: str) -> Step:
        with_id = [one for one in self.people.with_id_only(group) if not one.unanswered]
        if with_id and self.chance.random() < 0.5:
            return self.join(self.chance.choice(with_id))
        late = [one for one in self.people.members(group) if not one.unanswered]
        return self.rejoin(self.chance.choice(late)) if late else self.join_as_newcomer(group)

    def _sync_phase(self, group: str) -> Step:
        members = self.people.members(group)
        leaders = [one for one in members if one.leads]
        if leaders and self.chance.random() < (0.25 if self.walk.lingers_in == "CompletingRebalance" else 0.55):
            return self.sync(leaders[0])
        return self.sync(self.chance.choice(members)) if members else self.join_as_newcomer(group)

    def _nobody_there(self, group: str) -> Step | None:
        if self.people.state(group) == "Empty" and self.walk.lingers_in == "Dead" and self.chance.random() < 0.4:
            return self.walk.step(ADMIN, "DeleteGroups", self.walk.version("DeleteGroups"), groups_names=[group])
        return self._grow(group)

    def _grow(self, group: str) -> Step:
        with_id = [one for one in self.people.with_id_only(group) if not one.unanswered]
        return (
            self.join(self.chance.choice(with_id))
            if with_id and self.chance.random() < 0.7
            else self.join_as_newcomer(group)
        )

    def _at_work(self, group: str) -> Step | None:
        members = self.people.members(group)
        if not members or (len(members) < self.walk.size and self.chance.random() < 0.6):
            return self._grow(group)
        person = self.chance.choice(members)
        if self.walk.lingers_in in ("Empty", "Dead") and self.chance.random() < 0.4:
            return self.leave(person)
        moves: list[tuple[float, Callable[[], Step | None]]] = [
            (2, lambda: self.heartbeat(person)),
            (2, lambda: self.commit(person)),
            (1.5, lambda: self.rejoin(person)),
            (1, lambda: self.leave(person)),
            (1, lambda: self.sync(person)),
            (0.7, lambda: self.join_as_newcomer(group)),
            (2 if any(one.instance for one in members) else 0, lambda: self.replace_static(group)),
        ]
        made: Step | None = self.walk.weighed(*moves)()
        return made
