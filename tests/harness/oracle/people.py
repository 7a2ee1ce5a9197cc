"""The people of a walk: clients of a group, and what the answers so far have told them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.harness.oracle.requests import PROTOCOLS, metadata_of

Step = dict[str, Any]
Outcome = dict[str, Any]

MEMBER_ID_REQUIRED, UNKNOWN_MEMBER, FENCED_INSTANCE = 79, 25, 82
INSTANCES = ("i1", "i2", "i3", "i4")
DEAD: dict[str, Any] = {"state": "Dead", "members": []}


@dataclass
class Person:
    """A process that is, was or wants to be a member of a group."""

    client: str
    group: str
    protocol_type: str
    instance: str | None
    offers: list[dict[str, str]]  # its protocols, the one it likes best first
    member_id: str = ""
    generation: int = -1
    protocol: str = PROTOCOLS[0]
    leads: bool = False
    holds_id_only: bool = False  # was given an id and has not joined with it
    former_ids: list[str] = field(default_factory=list)
    unanswered: set[int] = field(default_factory=set)  # its JoinGroups

    def forgets(self) -> None:
        if self.member_id:
            self.former_ids.append(self.member_id)
        self.member_id, self.leads, self.holds_id_only = "", False, False

    def names_itself(self) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "member_id": self.member_id,
            "generation_id": self.generation,
            "group_instance_id": self.instance,
        }


class People:
    """Everybody in a walk, with the groups as they were described last."""

    def __init__(self, chance: random.Random, groups: list[str]) -> None:
        self.chance = chance
        self.types = {group: chance.choice(("consumer", "consumer", "connect")) for group in groups}
        # Moods of a walk, so that each has a theme: few static members or many, agreement or strife, old clients or new.
        self.static_share = chance.choice((0.0, 0.3, 0.6))
        self.disagree = chance.random() < 0.25
        self.old_clients = chance.random() < 0.2
        self.all: list[Person] = []
        self.states: dict[str, dict[str, Any]] = dict.fromkeys(groups, DEAD)

    def state(self, group: str) -> str:
        return str(self.states.get(group, DEAD)["state"])

    def member_ids(self, group: str) -> set[str]:
        return {member["member"] for member in self.states.get(group, DEAD)["members"]}

    def members(self, group: str) -> list[Person]:
        ids = self.member_ids(group)
        return [one for one in self.all if one.group == group and one.member_id in ids]

    def with_id_only(self, group: str) -> list[Person]:
        return [one for one in self.all if one.group == group and one.holds_id_only]

    def former(self, group: str) -> list[Person]:
        return [one for one in self.all if one.group == group and one.former_ids]

    def outside(self, group: str) -> list[Person]:
        """Those who have no id and wait for none."""
        return [one for one in self.all if one.group == group and not one.member_id and not one.unanswered]

    def newcomer(self, group: str, instance: str | None = None) -> Person:
        if instance is None and self.chance.random() < self.static_share:
            taken = {one.instance for one in self.members(group)}
            instance = self.chance.choice([name for name in INSTANCES if name not in taken] or [None])
        name = f"c{len(self.all) + 1}"
        person = Person(name, group, self.types[group], instance, self.offers(group))
        self.all.append(person)
        return person

    def offers(self, group: str) -> list[dict[str, str]]:
        names = [name for name in PROTOCOLS if name == PROTOCOLS[0] or self.chance.random() < 0.45]
        if self.disagree:
            self.chance.shuffle(names)
        return [{"name": name, "metadata": metadata_of(self.types[group], self.chance)} for name in names]

    def other_offers(self, person: Person) -> list[dict[str, str]]:
        fresh = self.offers(person.group)
        if fresh != person.offers:
            return fresh
        return [{**offer, "metadata": metadata_of(person.protocol_type, self.chance)} for offer in person.offers]

    # ---- what the answers say

    def learn(self, outcome: Outcome, asked: dict[int, tuple[Step, Person | None]]) -> None:
        """Take in the answers that a step brought, to it or to earlier ones, and the groups as they are now."""
        self.states = outcome["state"]
        for reply in outcome["replies"]:
            step, person = asked[reply["to"]]
            if step["api"] == "JoinGroup" and person is not None:
                person.unanswered.discard(step["t"])
                self._joined(person, step["request"], reply["response"])
        for person in self._gone():
            self._lost(person)

    def _joined(self, person: Person, request: dict[str, Any], answer: dict[str, Any]) -> None:
        code = answer["error_code"]
        if code == MEMBER_ID_REQUIRED:
            person.forgets()
            person.member_id, person.holds_id_only = answer["member_id"], True
        elif code == 0:
            if person.member_id != answer["member_id"]:
                person.forgets()
            person.member_id, person.generation = answer["member_id"], answer["generation_id"]
            person.protocol, person.holds_id_only = answer["protocol_name"], False
            person.leads = answer["leader"] == person.member_id
            person.offers = request["protocols"]
        elif code in (UNKNOWN_MEMBER, FENCED_INSTANCE) and request["member_id"] in ("", person.member_id):
            self._lost(person)

    def _gone(self) -> Iterable[Person]:
        ids = {member for group in self.states for member in self.member_ids(group)}
        for person in list(self.all):
            if person.member_id not in ids | {""} and not person.holds_id_only and not person.unanswered:
                yield person

    def _lost(self, person: Person) -> None:
        person.forgets()
        if self.chance.random() < 0.5:  # its process starts again, as somebody new
            self.newcomer(person.group, person.instance)
