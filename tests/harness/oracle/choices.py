"""What Kafka may choose as it likes: a tied vote among protocols, and who leads after a leader is gone.

Both depend there on the order of a hash map. Our coordinator has rules of its own for them (docs/protocol.md), so a walk in
which Kafka chose otherwise says nothing from that step on and is dropped.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.harness.oracle.people import DEAD, Outcome, Step


class Dropped(Exception):
    """The walk cannot be compared; the text says why."""


class FreeChoices:
    """Follows a walk's groups far enough to know where Kafka was free to choose."""

    def __init__(self, groups: list[str]) -> None:
        self._lines: dict[str, list[str]] = {group: [] for group in groups}  # members in the order in which they came
        self._leader: dict[str, str] = {}
        self._is_open: set[str] = set()  # groups whose leader went while others stayed
        self._likes: dict[str, list[str]] = {}  # member id -> names of its protocols
        self._states: dict[str, dict[str, Any]] = dict.fromkeys(groups, DEAD)

    def judge(self, step: Step, outcome: Outcome, asked: dict[int, Step]) -> None:
        """Raises Dropped where a choice was open and went, or may have gone, otherwise than ours."""
        before, self._states = self._states, outcome["state"]
        self._replaced_in_stable(step, before)
        for group in self._lines:
            self._succession(group)
        voters: dict[str, list[list[str]]] = {group: [] for group in self._lines}
        for reply in outcome["replies"]:
            request, answer = asked[reply["to"]]["request"], reply["response"]
            if asked[reply["to"]]["api"] == "JoinGroup" and answer["error_code"] == 0:
                self._likes[answer["member_id"]] = [offer["name"] for offer in request["protocols"]]
                voters[request["group_id"]].append(self._likes[answer["member_id"]])
                self._led_by(request["group_id"], answer["leader"])
        for likes in voters.values():
            _refuse_tie(likes)

    def _replaced_in_stable(self, step: Step, before: dict[str, dict[str, Any]]) -> None:
        """A static member that comes back is answered at once if the vote would go as it did: so there is a vote."""
        request = step["request"]
        group = before.get(request.get("group_id", ""), DEAD)
        instance = request.get("group_instance_id")
        if step["api"] != "JoinGroup" or request["member_id"] or not instance or group["state"] != "Stable":
            return
        others = [member["member"] for member in group["members"] if member["instance"] != instance]
        if len(others) < len(group["members"]):
            likes = [self._likes[one] for one in others if one in self._likes]
            _refuse_tie([*likes, [offer["name"] for offer in request["protocols"]]])

    def _succession(self, group: str) -> None:
        there = [member["member"] for member in self._states[group]["members"]]
        line, leader = self._lines[group], self._leader.get(group)
        came = [one for one in there if one not in line]
        gone = [one for one in line if one not in there]
        line[:] = [one for one in line if one in there] + came
        if leader in there:
            return
        if not line:
            self._leader.pop(group, None)
            self._is_open.discard(group)
        elif leader is not None and len(came) == len(gone) == 1:
            self._leader[group] = came[0]  # a static leader under its new id
        else:
            self._leader[group] = line[0]
            if leader is not None and len(line) > 1:
                self._is_open.add(group)

    def _led_by(self, group: str, leader: str) -> None:
        if leader not in self._lines[group]:
            return  # the answer to a static member may name the id that it had before
        if leader != self._leader.get(group) and group in self._is_open:
            raise Dropped("another leader was chosen")
        self._leader[group] = leader
        self._is_open.discard(group)


def _refuse_tie(likes: list[list[str]]) -> None:
    common = set(likes[0]).intersection(*likes[1:]) if likes else set()
    if not common:
        return
    votes = Counter(next(name for name in names if name in common) for names in likes)
    if sum(count == max(votes.values()) for count in votes.values()) > 1:
        raise Dropped("the vote is tied")
