"""Plays walks on a running broker while generating them, and writes what it answers and stores in the form of the recordings."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from broker.protocol.errors import ErrorCode
from tests.harness.oracle.consumer import stored
from tests.harness.oracle.consumer.accidents import Accidents
from tests.harness.oracle.consumer.files import Recorded, State, Step
from tests.harness.oracle.consumer.generate import Walk
from tests.harness.oracle.consumer.player import ANSWER_WITHIN_S, PARKED_IN, Inconclusive, Player
from tests.harness.oracle.consumer.scenarios import Scenario
from tests.harness.oracle.consumer.state import DEAD
from tests.harness.oracle.consumer.topics import TopicSets
from tests.harness.oracle.over_socket import Address
from tests.harness.oracle.record import Recording

ATTEMPTS = 60
AT_ONCE = 4
Restart = Callable[[], None]
PARKED_S = 0.15  # for an answer that may not come
CONTRADICTION_S = 1.5  # while the state of the groups contradicts what is unanswered
LOOKUP_S = 2.0  # for the lookup of a regular expression
LEAST_INTERVAL_S = 10.0  # between lookups of a group that has results of an earlier one
# Errors of JoinGroup that create no group.
NOT_CREATED = (ErrorCode.INVALID_GROUP_ID, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.INVALID_SESSION_TIMEOUT)


class Recorder:
    """A walk that is being recorded."""

    def __init__(
        self, address: Address, walk: Walk | Scenario, header: Recorded, sets: TopicSets, restart: Restart | None
    ) -> None:
        self.walk, self.header = walk, header
        self.player = Player(address, header, sets, restart)
        self.steps: list[Step] = []
        self.state = self.before = self.player.state()
        self._accidents = Accidents()
        self._looked_up: dict[str, float] = {}  # group -> when its regular expressions were looked up
        self._expressions: dict[str, set[str]] = {group: set() for group in walk.groups}  # those with a record

    def play(self) -> Recorded:
        while (step := self.walk.next()) is not None:
            self._played(step)
        return {**self.header, "before": self.before, "steps": self.steps}

    def _played(self, step: Step) -> None:
        parks = step["api"] in PARKED_IN
        replies = self.player.perform(step, {step["t"]}, PARKED_S if parks else ANSWER_WITHIN_S)
        records, state = self._settled(step, replies)
        self.player.watch_time()
        looked_up = [at for group, at in self._looked_up.items() if self._expressions[group]]
        if any(time.monotonic() - at > LEAST_INTERVAL_S - 1 for at in looked_up):
            raise Inconclusive("the machine is too slow for regular expressions")
        self._accidents.refuse(step, replies, self.state, state)
        changed = {group: seen for group, seen in state.items() if self.state.get(group) != seen}
        self.walk.learn(replies, state)
        self.steps.append(step | {"replies": replies, "state": changed, "records": records})
        self.state = state

    def _settled(self, step: Step, replies: list[dict[str, Any]]) -> tuple[list[Any], State]:
        """Records and state when everything has happened that the step causes; answers that come meanwhile are added."""
        began = time.monotonic()
        records: list[Any] = self.player.records()
        while True:
            state = self.player.state()
            replies += (answers := self.player.answers(set(), 0))
            records += (stored_now := self.player.records())
            self._note_lookups(records)
            waited_s = time.monotonic() - began
            lacks = waited_s < LOOKUP_S and self._lacks_lookup(state)
            is_late = (
                self._is_passing(state) or self._is_unseen(step, replies, state) or self._is_unwritten(state, records)
            )
            passes = is_late and waited_s < CONTRADICTION_S
            if not answers and not stored_now and not lacks and not passes:
                replies.sort(key=lambda one: one["to"])
                return stored.in_runs(records), state
            time.sleep(0.004)

    def _is_unseen(self, step: Step, replies: list[dict[str, Any]], state: State) -> bool:
        """Whether a JoinGroup has created a group, or made one of an Empty consumer group, that is not described yet."""
        if step["api"] != "JoinGroup":
            return False
        found = state.get(step["request"]["group_id"], {})
        if found.get("state") != DEAD and (found.get("type") != "consumer" or found["state"] != "Empty"):
            return False
        return all(one["to"] != step["t"] or one["response"]["error_code"] not in NOT_CREATED for one in replies)

    def _is_unwritten(self, state: State, records: list[Any]) -> bool:
        """Whether a classic group is Empty now, of which Kafka writes a record after its answer."""
        written = {group for kind, group, *_ in records if kind == stored.CLASSIC}
        return any(
            _is_empty(found) and not _is_empty(self.state[group])
            for group, found in state.items()
            if group not in written
        )

    def _is_passing(self, state: State) -> bool:
        """Whether a request is unanswered, or a rebalance unfinished, that nothing holds up."""
        parked: dict[tuple[str, str], int] = {}
        for step in self.player.unanswered():
            group, api = step["request"]["group_id"], step["api"]
            if state.get(group, {}).get("state") != PARKED_IN.get(api):
                return True
            parked[group, api] = parked.get((group, api), 0) + 1
        return any(
            found["state"] == "PreparingRebalance" and parked.get((group, "JoinGroup"), 0) >= len(found["members"])
            for group, found in state.items()
        )

    def _note_lookups(self, records: list[Any]) -> None:
        for kind, group, expression, value, *_ in records:
            if kind != stored.EXPRESSION:
                continue
            if value is not None and not set(value["topic_names"]) <= set(self.walk.topics):
                raise Inconclusive("the coordinator still sees deleted topics")
            if value is None:
                self._expressions[group].discard(expression)
            else:
                self._looked_up[group] = time.monotonic()
                self._expressions[group].add(expression)

    def _lacks_lookup(self, state: State) -> bool:
        """Whether a group has an expression that nobody has looked up, and may be looked up by now."""
        for group, found in state.items():
            used = {one["regex"] for one in found["members"].values() if one.get("regex")}
            last = self._looked_up.get(group) if self._expressions[group] else None
            if used - self._expressions[group] and (last is None or time.monotonic() - last > LEAST_INTERVAL_S):
                return True
        return False


def _is_empty(found: Any) -> bool:
    return bool(found["type"] == "classic" and found["state"] == "Empty")


def record_walk(
    address: Address, seed: int, attempt: int, kind: str, sets: TopicSets, restart: Restart | None = None
) -> Recorded:
    """One walk in the form of the recordings. Raises Inconclusive."""
    walk = Scenario(seed, attempt) if kind == "scenarios" else Walk(seed, attempt, kind)
    header = {
        "seed": seed,
        "attempt": attempt,
        "topics": walk.topics,
        "own_topics": walk.own_topics,
        "groups": walk.groups,
        "literals": walk.literals,
    }
    if isinstance(walk, Scenario):
        header["scenario"] = walk.name
    recorder = Recorder(address, walk, header, sets, restart)
    with contextlib.closing(recorder.player):
        return recorder.play()


def record(
    address: Address, seeds: Iterable[int], kind: str, settle_s: float = 0.0, restart: Restart | None = None
) -> Recording:
    """A walk for each seed; if one is inconclusive, the seed's next attempt is taken. One at a time if they `restart` the broker."""
    out = Recording([])
    sets = TopicSets(address, settle_s)

    def of_seed(seed: int) -> Recorded | None:
        for attempt in range(ATTEMPTS):
            try:
                return record_walk(address, seed, attempt, kind, sets, restart)
            except Inconclusive as reason:
                out.dropped[str(reason)] += 1
        out.given_up.append(seed)
        return None

    with ThreadPoolExecutor(AT_ONCE if restart is None else 1) as pool:
        out.walks += [walk for walk in pool.map(of_seed, seeds) if walk is not None]
    return out
