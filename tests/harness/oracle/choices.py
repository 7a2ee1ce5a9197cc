"""Choices that Kafka makes freely: a tied vote for a protocol, and the new leader after a leader has left.

In Kafka both depend on the order of a hash map; our coordinator has rules for them (docs/protocol.md). If Kafka chose
differently in a walk, the rest of the walk cannot be compared, and the walk is dropped.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.harness.oracle.participants import DEAD, Outcome, Step


class Dropped(Exception):
    """The walk cannot be compared; the text says why."""


class FreeChoices:
    """Follows the groups of a walk to know where Kafka was free to choose."""

    def __init__(self, groups: list[str]) -> None:
        self._lines: dict[str, list[str]] = {group: [] for group in groups}  # members in the order of joining
        self._leader: dict[str, str] = {}
        self._is_open: set[str] = set()  # groups whose leader left while others stayed
        self._likes: dict[str, list[str]] = {}  # member id -> names of its protocols
        self._states: dict[str, dict[str, Any]] = dict.fromkeys(groups, DEAD)

    def judge(self, step: Step, outcome: Outcome, asked: dict[int, Step]) -> None:
        """Raise Dropped if a choice was open and Kafka chose, or may have chosen, differently from us."""
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
        """A static member that returns is answered at once if the vote would have the same result, so there is a vote."""
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
            return  # the response to a static member may name its previous id
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
