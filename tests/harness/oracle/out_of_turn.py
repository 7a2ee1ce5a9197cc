"""Requests that do not fit the state of the group: valid ones out of turn, and ones that are wrong in one respect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.harness.oracle.moves import ADMIN, Move, Moves
from tests.harness.oracle.participants import Participant, Step
from tests.harness.oracle.requests import NO_TOPIC, TOPICS, metadata_of


class OutOfTurn(Moves):
    """Any request, whatever the state of the group is."""

    def step(self, group: str) -> Step | None:
        moves: list[tuple[float, Move]] = [
            (10, lambda g: self.heartbeat(*self._any_sender(g))),
            (12, lambda g: self.sync(*self._any_sender(g))),
            (12, lambda g: self.commit(*self._any_sender(g))),
            (5, self._leave),
            (14, self._odd_join),
            (9, self._fenced),
            (4, self.replace_static),
            (2, self.join_as_newcomer),
            (6, self._fetch),
            (5, self._describe),
            (4, self._list),
            (3, self._delete),
            (8, self._delete_offsets),
            (2.5, self._find),
        ]
        made: Step | None = self.walk.weighed(*moves)(group)
        return made

    # ---- senders

    def _any_sender(self, group: str) -> tuple[Participant, dict[str, Any]]:
        """A client and the ids it sends: right ones in most cases, otherwise wrong in one or two respects."""
        members = self.participants.members(group)
        others = self.participants.with_id_only(group) + self.participants.former(group)
        if others and self.rng.random() < 0.15:
            participant = self.rng.choice(others)
            member_id = participant.member_id or self.rng.choice(participant.former_ids)
            generation = self.rng.choice((participant.generation, participant.generation, -1, 1))
            return participant, participant.identity() | {"member_id": member_id, "generation_id": generation}
        if not members:
            participant = (
                self.rng.choice(self.participants.all) if self.participants.all else self.participants.newcomer(group)
            )
            return participant, {
                "group_id": group,
                "member_id": self.rng.choice(("", "", "ghost")),
                "generation_id": self.rng.choice((-1, -1, 0, 1, 2)),
                "group_instance_id": self.rng.choice((None, None, "i1")),
            }
        participant = self.rng.choice(members)
        second = self._lie(participant, members) if self.rng.random() < 0.2 else {}
        return participant, participant.identity() | self._lie(participant, members) | second

    def _lie(self, participant: Participant, members: list[Participant]) -> dict[str, Any]:
        instances = [one.instance for one in members if one.instance]
        ids = [one.member_id for one in members if one is not participant]
        lie: dict[str, Any] = self.walk.weighed(
            (45, {}),
            (6, {"generation_id": max(0, participant.generation - 1)}),
            (6, {"generation_id": participant.generation + self.rng.choice((1, 5))}),
            (4, {"generation_id": -1}),
            (5, {"member_id": "ghost"}),
            (5, {"member_id": ""}),
            (3 if ids else 0, {"member_id": self.rng.choice(ids or [""])}),
            (5, {"member_id": "", "generation_id": -1, "group_instance_id": None}),
            (4 if participant.instance else 0, {"group_instance_id": None}),
            (4, {"group_instance_id": "nobody"}),
            (1, {"group_instance_id": ""}),
            (12 if instances else 0, {"group_instance_id": self.rng.choice(instances or [None])}),
            (5, {"group_id": ""}),
        )
        return lie

    def _fenced(self, group: str) -> Step | None:
        """The instance id of a member together with an id of another member, or with one that the member had before."""
        statics = [one for one in self.participants.members(group) if one.instance]
        if not statics:
            return None
        participant = self.rng.choice(statics)
        ids = [one.member_id for one in self.participants.members(group) if one is not participant]
        ids += [old for one in self.participants.former(group) for old in one.former_ids] + ["ghost", ""]
        generation = self.rng.choice((participant.generation, participant.generation, -1))
        identity = participant.identity() | {"member_id": self.rng.choice(ids), "generation_id": generation}
        move = self.rng.choice((self.heartbeat, self.sync, self.leave, self.commit))
        made: Step = move(participant, identity)
        return made

    def _leave(self, group: str) -> Step:
        if self.rng.random() < 0.02:
            anyone = self.participants.newcomer(group)
            return self.walk.step(anyone, "LeaveGroup", self.rng.randint(3, 5), group_id=group, members=[])
        participant, identity = self._any_sender(group)
        batch = [identity]
        while self.rng.random() < 0.3:
            batch.append(self._any_sender(group)[1])
        return self.leave(participant, *batch)

    # ---- joins, mostly refused

    def _odd_join(self, group: str) -> Step:
        members, rng = self.participants.members(group), self.rng
        participant = rng.choice(members) if members and rng.random() < 0.6 else self.participants.newcomer(group)
        foreign = [
            {"name": name, "metadata": metadata_of(participant.protocol_type, rng)}
            for name in ("foreign", "stranger")[: rng.randint(1, 2)]
        ]
        moves: list[tuple[float, Callable[[], Step]]] = [
            (2, lambda: self.join(participant, member_id="ghost")),
            (2, lambda: self.join(participant, protocol_type="other")),
            (1, lambda: self.join(participant, protocol_type="")),
            (1, lambda: self.join(participant, protocols=[])),
            (2, lambda: self.join(participant, protocols=foreign)),
            (1, lambda: self.join(participant, protocols=self._each_name_once([*participant.offers, *foreign]))),
            (1.5, lambda: self.join(participant, session_timeout_ms=rng.choice((5_999, 0, -1, 1_800_001, 2**31 - 1)))),
            (1, lambda: self.join(participant, group_id="")),
            *self._joins_of_known(group, members),
        ]
        made: Step = self.walk.weighed(*moves)()
        return made

    @staticmethod
    def _each_name_once(protocols: list[dict[str, str]]) -> list[dict[str, str]]:
        """A protocol that is named twice blocks a group of Kafka's (docs/protocol.md), so there is nothing to compare."""
        return list({protocol["name"]: protocol for protocol in reversed(protocols)}.values())[::-1]

    def _joins_of_known(self, group: str, members: list[Participant]) -> list[tuple[float, Callable[[], Step]]]:
        rng, join = self.rng, self.join
        late: Callable[[], int] = lambda: rng.randint(5, 9)  # noqa: E731
        statics = [one for one in members if one.instance]
        parked = [one for one in members if one.unanswered]
        former, with_id = self.participants.former(group), self.participants.with_id_only(group)
        out: list[tuple[float, Callable[[], Step]]] = []

        def offer(weight: float, those: list[Participant], made: Callable[[Participant], Step]) -> None:
            if those:
                out.append((weight, lambda: made(rng.choice(those))))

        offer(4, former, lambda one: join(one, member_id=rng.choice(one.former_ids)))
        offer(6, parked, join)  # it gave up waiting: its first request is never answered
        offer(1.5, members, lambda one: join(one, late(), group_instance_id="nobody"))
        offer(2, with_id, lambda one: join(one, late(), group_instance_id="i9"))
        offer(1, statics, lambda one: join(one, group_instance_id=None))
        others = [one.member_id for one in members]
        offer(4, statics, lambda one: join(one, late(), member_id=rng.choice([*others, "ghost"])))
        return out

    # ---- offsets and administration

    def _fetch(self, group: str) -> Step:
        version = self.walk.version("OffsetFetch")
        named = [group, *(one for one in (*self.walk.groups, "$G0", "") if one != group and self.rng.random() < 0.2)]
        asked = []
        for one in named:
            identity = (
                self._any_sender(group)[1] if self.rng.random() < 0.4 else {"member_id": None, "generation_id": -1}
            )
            sender = {"member_id": identity["member_id"] or None, "member_epoch": identity["generation_id"]}
            asked.append({"group_id": one, "topics": self._which_offsets(version)} | sender)
        return self.walk.step(
            self._name_of_anyone(group),
            "OffsetFetch",
            version,
            group_id="" if self.rng.random() < 0.03 else group,
            topics=self._which_offsets(version),
            groups=asked,
            require_stable=self.rng.random() < 0.4,
        )

    def _which_offsets(self, version: int) -> list[dict[str, Any]] | None:
        if version >= 2 and self.rng.random() < 0.4:
            return None  # all
        names = self.rng.sample([*TOPICS, NO_TOPIC], self.rng.choice((1, 1, 2)))
        return [{"name": name, "partition_indexes": self._partitions(name)} for name in names]

    def _name_of_anyone(self, group: str) -> str:
        return self.rng.choice([one.client for one in self.participants.all if one.group == group] or [ADMIN])

    def _named(self, group: str) -> list[str]:
        others = self.rng.sample([*self.walk.groups, "$G0", ""], self.rng.choice((0, 0, 1, 2)))
        return list(dict.fromkeys([group, *others]))

    def _describe(self, group: str) -> Step:
        operations = self.rng.random() < 0.2
        version = self.walk.version("DescribeGroups")
        named = self._named(group)
        return self.walk.step(ADMIN, "DescribeGroups", version, groups=named, include_authorized_operations=operations)

    def _list(self, group: str) -> Step:
        states: tuple[list[str], ...] = (
            [],
            [],
            ["Stable"],
            ["stable", "EMPTY"],
            ["PreparingRebalance", "CompletingRebalance"],
            ["Dead"],
            ["Empty"],
            ["nonsense"],
        )
        types: tuple[list[str], ...] = ([], [], ["classic"], ["Classic", "consumer"], ["consumer"])
        version, rng = self.walk.version("ListGroups"), self.rng
        return self.walk.step(
            ADMIN, "ListGroups", version, states_filter=rng.choice(states), types_filter=rng.choice(types)
        )

    def _delete(self, group: str) -> Step:
        return self.walk.step(ADMIN, "DeleteGroups", self.walk.version("DeleteGroups"), groups_names=self._named(group))

    def _delete_offsets(self, group: str) -> Step:
        names = self.rng.sample([*TOPICS, NO_TOPIC], self.rng.choice((1, 1, 2, 3)))
        topics = [
            {"name": name, "partitions": [{"partition_index": one} for one in self._partitions(name)]} for name in names
        ]
        named = self.walk.weighed((18, group), (1, ""), (1, "$G0"))
        return self.walk.step(ADMIN, "OffsetDelete", 0, group_id=named, topics=topics)

    def _find(self, group: str) -> Step:
        version = self.walk.version("FindCoordinator")
        key, kind = self.walk.weighed((5, group), (1, "")), self.walk.weighed((4, 0), (1, 7))
        sender = self._name_of_anyone(group)
        return self.walk.step(
            sender, "FindCoordinator", version, key=key, key_type=kind, coordinator_keys=self._named(group)
        )
