"""Accidents of Kafka that we do not copy, and its free choices. A walk that meets one cannot be compared; docs/protocol.md says what we do."""

from __future__ import annotations

import json
from typing import Any

from broker.protocol.errors import ErrorCode
from tests.harness.oracle.consumer.files import State, Step
from tests.harness.oracle.consumer.forms import codes
from tests.harness.oracle.consumer.player import Inconclusive


class Accidents:
    """Watches a walk and raises Inconclusive if Kafka did by accident what we do otherwise."""

    def __init__(self) -> None:
        self._leaders: dict[str, str] = {}
        self._claims: dict[
            tuple[str, str], set[tuple[str, int]]
        ] = {}  # what each classic member last said that it owns

    def refuse(self, step: Step, replies: list[dict[str, Any]], before: State, after: State) -> None:
        for reply in replies:
            if ErrorCode.UNKNOWN_SERVER_ERROR in codes(reply["response"]):
                raise Inconclusive("Kafka fails")
            if ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in codes(reply["response"]):
                raise Inconclusive("Kafka has no producer ids yet")
        if step["api"] == "JoinGroup":
            group = before.get(step["request"]["group_id"], {})
            # Kafka forgets the group, without a record, so that a restart brings it back.
            if group.get("type") == "consumer" and group["state"] == "Empty" and step["request"]["member_id"]:
                raise Inconclusive("Kafka forgets an empty group")
        self._succession(replies, before, after)
        self._downgrade(before, after)
        self._upgrade(before, after)
        if step["api"] == "JoinGroup":
            self._joined(step["request"], replies, before, after)

    def _joined(self, request: dict[str, Any], replies: list[dict[str, Any]], before: State, after: State) -> None:
        group = request["group_id"]
        if request["protocols"] and request["protocols"][0]["metadata"].startswith("{"):
            owned = json.loads(request["protocols"][0]["metadata"]).get("owned", {})
            self._claims[group, request["member_id"]] = places(owned)
        # Such a group goes back to the epoch before this request, which the answer does not name.
        if before.get(group, {}).get("type") == "consumer" and after.get(group, {}).get("type") == "classic":
            generations = [reply["response"].get("generation_id", -1) for reply in replies]
            if any(generation > before[group]["epochs"][0] for generation in generations):
                raise Inconclusive("the answer names an epoch that the group does not have")

    def _upgrade(self, before: State, after: State) -> None:
        """Kafka assigns what a classic member has not given up yet, if its last assignment lacks it."""
        for group, state in after.items():
            members = before[group]["members"]
            if before[group]["type"] != "classic" or state["type"] != "consumer":
                continue
            assigned = set[tuple[str, int]]()
            for member in members.values():
                assigned |= places(json.loads(member["has"])["assigned"]) if member["has"].startswith("{") else set()
            if any(self._claims.get((group, member_id), set()) - assigned for member_id in members):
                raise Inconclusive("a classic member still owns partitions that it is to give up")

    def _downgrade(self, before: State, after: State) -> None:
        """The leader of a group that becomes classic is the first in a table that depends on all bits of the members' ids."""
        for group, state in after.items():
            has_made = any(member_id.startswith("$M") for member_id in before[group]["members"])
            if (
                before[group]["type"] == "consumer"
                and state["type"] == "classic"
                and has_made
                and len(state["members"]) > 1
            ):
                raise Inconclusive("the leader depends on ids that the broker has made")

    def _succession(self, replies: list[dict[str, Any]], before: State, after: State) -> None:
        """When the leader of a classic group leaves, Kafka takes the next one from a hash table."""
        for group, state in after.items():
            leader = self._leaders.get(group)
            members = state["members"].keys()
            if state["type"] != "classic" or not members:
                self._leaders.pop(group, None)
            elif leader is not None and leader not in members and len(members & before[group]["members"].keys()) > 1:
                raise Inconclusive("another leader is chosen")
        for reply in replies:
            answer = reply["response"]
            if isinstance(answer, dict) and answer.get("leader") and not answer.get("error_code"):
                for group, state in after.items():
                    if answer["leader"] in state["members"]:
                        self._leaders[group] = answer["leader"]


def places(owned: dict[str, list[int]]) -> set[tuple[str, int]]:
    return {(topic, partition) for topic, partitions in owned.items() for partition in partitions}
