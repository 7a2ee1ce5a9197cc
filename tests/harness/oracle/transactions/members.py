"""The members of a walk's groups: at most one in each group, so that every JoinGroup is answered at once."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

NOBODY: dict[str, Any] = {"generation_id": -1, "member_id": "", "group_instance_id": None}
SUBSCRIPTION = "\0\0\0\0\0\0\xff\xff\xff\xff"  # of no topic


@dataclass
class Member:
    member_id: str
    generation: int
    instance: str | None


class Members:
    def __init__(self, rng: random.Random, groups: list[str]) -> None:
        self.rng = rng
        self.by_group: dict[str, Member | None] = dict.fromkeys(groups)
        self.former: dict[str, list[Member]] = {group: [] for group in groups}

    def identity(self, group: str) -> dict[str, Any]:
        """The fields of the group's member, or those of a client that is none."""
        member = self.by_group.get(group)
        if member is None:
            return NOBODY
        return {
            "generation_id": member.generation,
            "member_id": member.member_id,
            "group_instance_id": member.instance,
        }

    def wrong_identity(self, group: str) -> dict[str, Any]:
        right = self.identity(group)
        wrong: list[dict[str, Any]] = [
            {"generation_id": right["generation_id"] + 1},
            {"generation_id": max(right["generation_id"] - 1, 0)},
            {"member_id": "ghost"},
            {"group_instance_id": "i9"},
            {"group_instance_id": "i1"},
            {"member_id": "ghost", "generation_id": 1},
            {"member_id": "", "generation_id": right["generation_id"]},
            {"member_id": right["member_id"], "generation_id": -1},
            NOBODY,
        ]
        if self.former.get(group):
            old = self.rng.choice(self.former[group])
            wrong.append({"member_id": old.member_id, "generation_id": old.generation})
        return right | self.rng.choice(wrong)

    def learn(self, step: dict[str, Any], response: Any) -> None:
        if not isinstance(response, dict):
            return
        group = step["request"].get("group_id", "")
        if step["api"] == "JoinGroup" and response["error_code"] == 0:
            self._gone(group)
            self.by_group[group] = Member(
                response["member_id"], response["generation_id"], step["request"].get("group_instance_id")
            )
        if step["api"] == "LeaveGroup" and response["error_code"] == 0:
            self._gone(group)

    def _gone(self, group: str) -> None:
        member = self.by_group.get(group)
        if member is not None:
            self.former[group].append(member)
        self.by_group[group] = None
