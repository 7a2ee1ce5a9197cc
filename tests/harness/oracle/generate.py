"""Makes a walk: every request is chosen by a seed and by the answers to those before, so that groups come far.

Part of the requests are what a well-behaved client would send next; they carry the group from state to state. The others
are sent whatever the state is: right ones out of turn, and ones that are wrong in one respect.
"""

from __future__ import annotations

import random
from typing import Any

from tests.harness.oracle.astray import Astray
from tests.harness.oracle.moves import ADMIN, Onward
from tests.harness.oracle.people import People, Person, Step
from tests.harness.oracle.requests import BY_NAME, complete


class Walk:
    """A walk as it is made: `next` gives the step to send, `learn` takes what came of it."""

    def __init__(self, seed: int, attempt: int = 0) -> None:
        self.chance = chance = random.Random(f"walk {seed} attempt {attempt}")
        self.seed = seed
        self.groups = ["$G1", "$G2"] if chance.random() < 0.25 else ["$G1"]
        self.people = People(chance, self.groups)
        self.length = chance.randint(18, 44)
        self.size = chance.choice((2, 3, 3, 4))  # members that a group grows to before something happens to it
        self.lingers_in = chance.choice(
            (None, None, "PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead")
        )
        self.starts_calmly = chance.random() < 0.6
        self.asked: dict[int, tuple[Step, Person | None]] = {}
        self._ending: list[Step] | None = None
        self._onward = Onward(self)
        self._astray = Astray(self)

    def next(self) -> Step | None:
        """The next step; none when the walk is over."""
        if len(self.asked) < self.length:
            return self._chosen()
        if self._ending is None:
            self._ending = list(reversed(self._last_steps()))
        return self._ending.pop() if self._ending else None

    def learn(self, outcome: dict[str, Any]) -> None:
        self.people.learn(outcome, self.asked)
        if self.starts_calmly and any(self._is_grown(group) for group in self.groups):
            self.starts_calmly = False

    def _is_grown(self, group: str) -> bool:
        return self.people.state(group) == "Stable" and len(self.people.members(group)) >= self.size

    def _chosen(self) -> Step:
        while True:
            group = self.chance.choice(self.groups)
            moves = self._onward if self.chance.random() < self._share_of_onward(group) else self._astray
            made = moves.step(group)
            if made is not None:
                return made

    def _share_of_onward(self, group: str) -> float:
        if self.starts_calmly:
            return 0.85
        return 0.25 if self.people.state(group) == self.lingers_in else 0.54

    def step(self, sender: Person | str, api: str, version: int, **fields: Any) -> Step:
        person = None if isinstance(sender, str) else sender
        number = len(self.asked) + 1
        step = {
            "t": number,
            "client": sender if isinstance(sender, str) else sender.client,
            "api": api,
            "version": version,
            "request": complete(api, version, fields),
        }
        self.asked[number] = step, person
        if api == "JoinGroup" and person is not None:
            person.unanswered.add(number)
        return step

    def version(self, api: str, least: int = 0) -> int:
        versions = BY_NAME[api].versions
        if api == "JoinGroup" and self.people.old_clients and not least:
            return self.chance.randint(0, 3)
        return self.chance.choice((versions[-1], self.chance.randint(max(least, versions[0]), versions[-1])))

    def weighed(self, *choices: tuple[float, Any]) -> Any:
        return self.chance.choices([choice for _, choice in choices], [weight for weight, _ in choices])[0]

    def _last_steps(self) -> list[Step]:
        """Everybody is removed, which answers what is parked; what remains is looked at and deleted."""
        steps = []
        for group in self.groups:
            ids = sorted(self.people.member_ids(group)) + [one.member_id for one in self.people.with_id_only(group)]
            for member_id in dict.fromkeys(ids):
                leaver = {"member_id": member_id, "reason": "the walk is over"}
                steps.append(self.step(ADMIN, "LeaveGroup", 5, group_id=group, members=[leaver]))
        steps += [self.step(ADMIN, "OffsetFetch", 7, group_id=group, topics=None) for group in self.groups]
        steps.append(self.step(ADMIN, "DescribeGroups", 6, groups=self.groups))
        steps.append(self.step(ADMIN, "DeleteGroups", 2, groups_names=self.groups))
        steps.append(self.step(ADMIN, "ListGroups", 5))
        return steps
