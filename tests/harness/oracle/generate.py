"""Generates a walk: each request is chosen by a seed and by the previous answers, so that groups reach every state.

Part of the requests are what a well-behaved client would send next; they drive the group from state to state. The others
are sent in any state: valid ones out of turn, and ones that are wrong in one respect.
"""

from __future__ import annotations

import random
from typing import Any

from tests.harness.oracle.moves import ADMIN, Onward
from tests.harness.oracle.out_of_turn import OutOfTurn
from tests.harness.oracle.participants import Participant, Participants, Step
from tests.harness.oracle.requests import BY_NAME, complete


class Walk:
    """A walk in the making: `next` returns the step to send, `learn` takes its outcome."""

    def __init__(self, seed: int, attempt: int = 0) -> None:
        self.rng = rng = random.Random(f"walk {seed} attempt {attempt}")
        self.seed = seed
        self.groups = ["$G1", "$G2"] if rng.random() < 0.25 else ["$G1"]
        self.participants = Participants(rng, self.groups)
        self.length = rng.randint(18, 44)
        self.size = rng.choice((2, 3, 3, 4))  # how many members a group gets before something happens to it
        self.lingers_in = rng.choice(
            (None, None, "PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead")
        )
        self.starts_calmly = rng.random() < 0.6
        self.asked: dict[int, tuple[Step, Participant | None]] = {}
        self._ending: list[Step] | None = None
        self._onward = Onward(self)
        self._out_of_turn = OutOfTurn(self)

    def next(self) -> Step | None:
        """The next step; None if the walk is over."""
        if len(self.asked) < self.length:
            return self._chosen()
        if self._ending is None:
            self._ending = list(reversed(self._last_steps()))
        return self._ending.pop() if self._ending else None

    def learn(self, outcome: dict[str, Any]) -> None:
        self.participants.learn(outcome, self.asked)
        if self.starts_calmly and any(self._is_grown(group) for group in self.groups):
            self.starts_calmly = False

    def _is_grown(self, group: str) -> bool:
        return self.participants.state(group) == "Stable" and len(self.participants.members(group)) >= self.size

    def _chosen(self) -> Step:
        while True:
            group = self.rng.choice(self.groups)
            moves = self._onward if self.rng.random() < self._share_of_onward(group) else self._out_of_turn
            made = moves.step(group)
            if made is not None:
                return made

    def _share_of_onward(self, group: str) -> float:
        if self.starts_calmly:
            return 0.85
        return 0.25 if self.participants.state(group) == self.lingers_in else 0.54

    def step(self, sender: Participant | str, api: str, version: int, **fields: Any) -> Step:
        participant = None if isinstance(sender, str) else sender
        number = len(self.asked) + 1
        step = {
            "t": number,
            "client": sender if isinstance(sender, str) else sender.client,
            "api": api,
            "version": version,
            "request": complete(api, version, fields),
        }
        self.asked[number] = step, participant
        if api == "JoinGroup" and participant is not None:
            participant.unanswered.add(number)
        return step

    def version(self, api: str, least: int = 0) -> int:
        versions = BY_NAME[api].versions
        if api == "JoinGroup" and self.participants.old_clients and not least:
            return self.rng.randint(0, 3)
        return self.rng.choice((versions[-1], self.rng.randint(max(least, versions[0]), versions[-1])))

    def weighed(self, *choices: tuple[float, Any]) -> Any:
        return self.rng.choices([choice for _, choice in choices], [weight for weight, _ in choices])[0]

    def _last_steps(self) -> list[Step]:
        """Remove all members, which answers what is parked; then describe and delete what remains."""
        steps = []
        for group in self.groups:
            ids = sorted(self.participants.member_ids(group)) + [
                one.member_id for one in self.participants.with_id_only(group)
            ]
            for member_id in dict.fromkeys(ids):
                leaver = {"member_id": member_id, "reason": "the walk is over"}
                steps.append(self.step(ADMIN, "LeaveGroup", 5, group_id=group, members=[leaver]))
        steps += [self.step(ADMIN, "OffsetFetch", 7, group_id=group, topics=None) for group in self.groups]
        steps.append(self.step(ADMIN, "DescribeGroups", 6, groups=self.groups))
        steps.append(self.step(ADMIN, "DeleteGroups", 2, groups_names=self.groups))
        steps.append(self.step(ADMIN, "ListGroups", 5))
        return steps
