"""Requests sent in whatever state the group is: right ones out of turn, and ones that are wrong in one respect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.harness.oracle.moves import ADMIN, Move, Moves
from tests.harness.oracle.people import Person, Step
from tests.harness.oracle.requests import NO_TOPIC, TOPICS, metadata_of


class Astray(Moves):
    """Anything, in whatever state the group is."""

    def step(self, group: str) -> Step | None:
        moves: list[tuple[float, Move]] = [
            (10, lambda g: self.heartbeat(*self._somebody(g))),
            (12, lambda g: self.sync(*self._somebody(g))),
            (12, lambda g: self.commit(*self._somebody(g))),
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

    # ---- who it is that asks

    def _somebody(self, group: str) -> tuple[Person, dict[str, Any]]:
        """A person, and how it names itself: rightly in most cases, else wrongly in one respect or two."""
        members = self.people.members(group)
        others = self.people.with_id_only(group) + self.people.former(group)
        if others and self.chance.random() < 0.15:
            person = self.chance.choice(others)
            member_id = person.member_id or self.chance.choice(person.former_ids)
            generation = self.chance.choice((person.generation, person.generation, -1, 1))
            return person, person.names_itself() | {"member_id": member_id, "generation_id": generation}
        if not members:
            person = self.chance.choice(self.people.all) if self.people.all else self.people.newcomer(group)
            return person, {
                "group_id": group,
                "member_id": self.chance.choice(("", "", "ghost")),
                "generation_id": self.chance.choice((-1, -1, 0, 1, 2)),
                "group_instance_id": self.chance.choice((None, None, "i1")),
            }
        person = self.chance.choice(members)
        second = self._lie(person, members) if self.chance.random() < 0.2 else {}
        return person, person.names_itself() | self._lie(person, members) | second

    def _lie(self, person: Person, members: list[Person]) -> dict[str, Any]:
        instances = [one.instance for one in members if one.instance]
        ids = [one.member_id for one in members if one is not person]
        lie: dict[str, Any] = self.walk.weighed(
            (45, {}),
            (6, {"generation_id": max(0, person.generation - 1)}),
            (6, {"generation_id": person.generation + self.chance.choice((1, 5))}),
            (4, {"generation_id": -1}),
            (5, {"member_id": "ghost"}),
            (5, {"member_id": ""}),
            (3 if ids else 0, {"member_id": self.chance.choice(ids or [""])}),
            (5, {"member_id": "", "generation_id": -1, "group_instance_id": None}),
            (4 if person.instance else 0, {"group_instance_id": None}),
            (4, {"group_instance_id": "nobody"}),
            (1, {"group_instance_id": ""}),
            (12 if instances else 0, {"group_instance_id": self.chance.choice(instances or [None])}),
            (5, {"group_id": ""}),
        )
        return lie

    def _fenced(self, group: str) -> Step | None:
        """The instance id of a member beside an id that is another's, or was its own before."""
        statics = [one for one in self.people.members(group) if one.instance]
        if not statics:
            return None
        person = self.chance.choice(statics)
        ids = [one.member_id for one in self.people.members(group) if one is not person]
        ids += [old for one in self.people.former(group) for old in one.former_ids] + ["ghost", ""]
        generation = self.chance.choice((person.generation, person.generation, -1))
        said = person.names_itself() | {"member_id": self.chance.choice(ids), "generation_id": generation}
        move = self.chance.choice((self.heartbeat, self.sync, self.leave, self.commit))
        made: Step = move(person, said)
        return made

    def _leave(self, group: str) -> Step:
        if self.chance.random() < 0.02:
            anyone = self.people.newcomer(group)
            return self.walk.step(anyone, "LeaveGroup", self.chance.randint(3, 5), group_id=group, members=[])
        person, said = self._somebody(group)
        batch = [said]
        while self.chance.random() < 0.3:
            batch.append(self._somebody(group)[1])
        return self.leave(person, *batch)

    # ---- joins that are refused, mostly

    def _odd_join(self, group: str) -> Step:
        members, chance = self.people.members(group), self.chance
        person = chance.choice(members) if members and chance.random() < 0.6 else self.people.newcomer(group)
        foreign = [
            {"name": name, "metadata": metadata_of(person.protocol_type, chance)}
            for name in ("foreign", "stranger")[: chance.randint(1, 2)]
        ]
        moves: list[tuple[float, Callable[[], Step]]] = [
            (2, lambda: self.join(person, member_id="ghost")),
            (2, lambda: self.join(person, protocol_type="other")),
            (1, lambda: self.join(person, protocol_type="")),
            (1, lambda: self.join(person, protocols=[])),
            (2, lambda: self.join(person, protocols=foreign)),
            (1, lambda: self.join(person, protocols=self._each_name_once([*person.offers, *foreign]))),
            (1.5, lambda: self.join(person, session_timeout_ms=chance.choice((5_999, 0, -1, 1_800_001, 2**31 - 1)))),
            (1, lambda: self.join(person, group_id="")),
            *self._joins_of_known(group, members),
        ]
        made: Step = self.walk.weighed(*moves)()
        return made

    @staticmethod
    def _each_name_once(protocols: list[dict[str, str]]) -> list[dict[str, str]]:
        """A protocol that is named twice wedges a Kafka (docs/protocol.md): nothing to compare."""
        return list({protocol["name"]: protocol for protocol in reversed(protocols)}.values())[::-1]

    def _joins_of_known(self, group: str, members: list[Person]) -> list[tuple[float, Callable[[], Step]]]:
        chance, join = self.chance, self.join
        late: Callable[[], int] = lambda: chance.randint(5, 9)  # noqa: E731
        statics = [one for one in members if one.instance]
        parked = [one for one in members if one.unanswered]
        former, with_id = self.people.former(group), self.people.with_id_only(group)
        out: list[tuple[float, Callable[[], Step]]] = []

        def offer(weight: float, those: list[Person], made: Callable[[Person], Step]) -> None:
            if those:
                out.append((weight, lambda: made(chance.choice(those))))

        offer(4, former, lambda one: join(one, member_id=chance.choice(one.former_ids)))
        offer(6, parked, join)  # it gave up waiting: its first request is never answered
        offer(1.5, members, lambda one: join(one, late(), group_instance_id="nobody"))
        offer(2, with_id, lambda one: join(one, late(), group_instance_id="i9"))
        offer(1, statics, lambda one: join(one, group_instance_id=None))
        others = [one.member_id for one in members]
        offer(4, statics, lambda one: join(one, late(), member_id=chance.choice([*others, "ghost"])))
        return out

    # ---- offsets and admin

    def _fetch(self, group: str) -> Step:
        version = self.walk.version("OffsetFetch")
        named = [group, *(one for one in (*self.walk.groups, "$G0", "") if one != group and self.chance.random() < 0.2)]
        asked = []
        for one in named:
            said = self._somebody(group)[1] if self.chance.random() < 0.4 else {"member_id": None, "generation_id": -1}
            who = {"member_id": said["member_id"] or None, "member_epoch": said["generation_id"]}
            asked.append({"group_id": one, "topics": self._which_offsets(version)} | who)
        return self.walk.step(
            self._name_of_anyone(group),
            "OffsetFetch",
            version,
            group_id="" if self.chance.random() < 0.03 else group,
            topics=self._which_offsets(version),
            groups=asked,
            require_stable=self.chance.random() < 0.4,
        )

    def _which_offsets(self, version: int) -> list[dict[str, Any]] | None:
        if version >= 2 and self.chance.random() < 0.4:
            return None  # all
        names = self.chance.sample([*TOPICS, NO_TOPIC], self.chance.choice((1, 1, 2)))
        return [{"name": name, "partition_indexes": self._partitions(name)} for name in names]

    def _name_of_anyone(self, group: str) -> str:
        return self.chance.choice([one.client for one in self.people.all if one.group == group] or [ADMIN])

    def _named(self, group: str) -> list[str]:
        others = self.chance.sample([*self.walk.groups, "$G0", ""], self.chance.choice((0, 0, 1, 2)))
        return list(dict.fromkeys([group, *others]))

    def _describe(self, group: str) -> Step:
        operations = self.chance.random() < 0.2
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
        version, chance = self.walk.version("ListGroups"), self.chance
        return self.walk.step(
            ADMIN, "ListGroups", version, states_filter=chance.choice(states), types_filter=chance.choice(types)
        )

    def _delete(self, group: str) -> Step:
        return self.walk.step(ADMIN, "DeleteGroups", self.walk.version("DeleteGroups"), groups_names=self._named(group))

    def _delete_offsets(self, group: str) -> Step:
        names = self.chance.sample([*TOPICS, NO_TOPIC], self.chance.choice((1, 1, 2, 3)))
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
