"""The clients of a walk, and what they know from the answers so far."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from broker.protocol.errors import ErrorCode
from tests.harness.oracle.requests import PROTOCOLS, metadata_of

Step = dict[str, Any]
Outcome = dict[str, Any]

INSTANCES = ("i1", "i2", "i3", "i4")
DEAD: dict[str, Any] = {"state": "Dead", "members": []}


@dataclass
class Participant:
    """A process that is, was or wants to be a member of a group."""

    client: str
    group: str
    protocol_type: str
    instance: str | None
    offers: list[dict[str, str]]  # its protocols, most preferred first
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

    def identity(self) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "member_id": self.member_id,
            "generation_id": self.generation,
            "group_instance_id": self.instance,
        }


class Participants:
    """All clients of a walk, and the groups as last described."""

    def __init__(self, rng: random.Random, groups: list[str]) -> None:
        self.rng = rng
        self.types = {group: rng.choice(("consumer", "consumer", "connect")) for group in groups}
        # Each walk has a theme: few or many static members, shared or conflicting protocols, old or new clients.
        self.static_share = rng.choice((0.0, 0.3, 0.6))
        self.disagree = rng.random() < 0.25
        self.old_clients = rng.random() < 0.2
        self.all: list[Participant] = []
        self.states: dict[str, dict[str, Any]] = dict.fromkeys(groups, DEAD)

    def state(self, group: str) -> str:
        return str(self.states.get(group, DEAD)["state"])

    def member_ids(self, group: str) -> set[str]:
        return {member["member"] for member in self.states.get(group, DEAD)["members"]}

    def members(self, group: str) -> list[Participant]:
        ids = self.member_ids(group)
        return [one for one in self.all if one.group == group and one.member_id in ids]

    def with_id_only(self, group: str) -> list[Participant]:
        return [one for one in self.all if one.group == group and one.holds_id_only]

    def former(self, group: str) -> list[Participant]:
        return [one for one in self.all if one.group == group and one.former_ids]

    def outside(self, group: str) -> list[Participant]:
        """Clients that have no id and wait for none."""
        return [one for one in self.all if one.group == group and not one.member_id and not one.unanswered]

    def newcomer(self, group: str, instance: str | None = None) -> Participant:
        if instance is None and self.rng.random() < self.static_share:
            taken = {one.instance for one in self.members(group)}
            instance = self.rng.choice([name for name in INSTANCES if name not in taken] or [None])
        name = f"c{len(self.all) + 1}"
        participant = Participant(name, group, self.types[group], instance, self.offers(group))
        self.all.append(participant)
        return participant

    def offers(self, group: str) -> list[dict[str, str]]:
        names = [name for name in PROTOCOLS if name == PROTOCOLS[0] or self.rng.random() < 0.45]
        if self.disagree:
            self.rng.shuffle(names)
        return [{"name": name, "metadata": metadata_of(self.types[group], self.rng)} for name in names]

    def other_offers(self, participant: Participant) -> list[dict[str, str]]:
        fresh = self.offers(participant.group)
        if fresh != participant.offers:
            return fresh
        return [{**offer, "metadata": metadata_of(participant.protocol_type, self.rng)} for offer in participant.offers]

    # ---- learning from answers

    def learn(self, outcome: Outcome, asked: dict[int, tuple[Step, Participant | None]]) -> None:
        """Take in the answers that a step brought, to it or to earlier steps, and the groups as they are now."""
        self.states = outcome["state"]
        for reply in outcome["replies"]:
            step, participant = asked[reply["to"]]
            if step["api"] == "JoinGroup" and participant is not None:
                participant.unanswered.discard(step["t"])
                self._joined(participant, step["request"], reply["response"])
        for participant in self._gone():
            self._lost(participant)

    def _joined(self, participant: Participant, request: dict[str, Any], answer: dict[str, Any]) -> None:
        code = answer["error_code"]
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            participant.forgets()
            participant.member_id, participant.holds_id_only = answer["member_id"], True
        elif code == ErrorCode.NONE:
            if participant.member_id != answer["member_id"]:
                participant.forgets()
            participant.member_id, participant.generation = answer["member_id"], answer["generation_id"]
            participant.protocol, participant.holds_id_only = answer["protocol_name"], False
            participant.leads = answer["leader"] == participant.member_id
            participant.offers = request["protocols"]
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID) and request["member_id"] in (
            "",
            participant.member_id,
        ):
            self._lost(participant)

    def _gone(self) -> Iterable[Participant]:
        ids = {member for group in self.states for member in self.member_ids(group)}
        for participant in list(self.all):
            if participant.member_id not in ids | {""} and not participant.holds_id_only and not participant.unanswered:
                yield participant

    def _lost(self, participant: Participant) -> None:
        participant.forgets()
        if self.rng.random() < 0.5:  # its process restarts as a new client
            self.newcomer(participant.group, participant.instance)
