"""Plays walks on a running broker while generating them, and writes its answers in the form of the recordings.

A step is sent when everything that the previous one causes has arrived. What that is cannot be known in advance: an
unanswered request may be parked or only slow, and a group can be described only milliseconds after its creation. So the
state of the groups is checked too: a JoinGroup is parked only in PreparingRebalance, a SyncGroup only in CompletingRebalance.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupResponse
from broker.protocol.messages.offset_commit import OffsetCommitResponse
from broker.protocol.wire_types import Message
from tests.harness.oracle import over_socket, replay
from tests.harness.oracle.choices import Dropped, FreeChoices
from tests.harness.oracle.generate import Walk
from tests.harness.oracle.over_socket import UUID_FORM, Address, SocketPlayer
from tests.harness.oracle.participants import DEAD, Outcome, Step
from tests.harness.oracle.requests import TOPICS

PARKED_IN = {"JoinGroup": "PreparingRebalance", "SyncGroup": "CompletingRebalance"}
# Errors of JoinGroup that create no group.
GROUP_NOT_CREATED = {
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.INVALID_SESSION_TIMEOUT,
}
ATTEMPTS = 12
AT_ONCE = 8
FOREVER = -1  # not a step number: waiting for it means waiting until the time is over


@dataclass(frozen=True)
class Patience:
    """How long the recorder waits if it cannot know whether more will arrive."""

    parked_s: float = 0.15  # for a response that may not come
    contradiction_s: float = 1.5  # while the state of the groups contradicts what is unanswered

    def times(self, factor: float) -> Patience:
        return Patience(self.parked_s * factor, self.contradiction_s * factor)


@dataclass
class Recording:
    """Walks and how they were made."""

    walks: list[dict[str, Any]]
    dropped: Counter[str] = field(default_factory=Counter)  # attempts by reason
    given_up: list[int] = field(default_factory=list)  # seeds without a comparable attempt


class Recorder(SocketPlayer):
    """The clients of one walk, on a broker whose answers are not known in advance."""

    def __init__(self, address: Address, groups: list[str], patience: Patience) -> None:
        super().__init__(address, groups)
        self.patience = patience
        self.forms: dict[str, str] = {}
        self.owner: dict[int, str] = {}  # step number -> id of the member that sent it
        self.abandoned: set[int] = set()  # requests that will never be answered
        self.states: dict[str, Any] = self._state(self.describe())

    def record(self, step: Step) -> Outcome:
        self.send(step)
        parkable = step["api"] in PARKED_IN
        came = self.answers({step["t"]}, self.patience.parked_s if parkable else over_socket.ANSWER_WITHIN_S)
        known = set(self.names.live)
        deadline = time.monotonic() + self.patience.contradiction_s
        while True:
            self._pass_after_the_unanswered()
            described = self.describe()
            if more := self.answers(set(), 0):
                came += more  # and what was described may be older than these answers
                continue
            self._name_new([*(message for _, message in came), described])
            self.states = self._state(described)
            self.owner[step["t"]] = step["request"].get("member_id") or next(iter(self.names.live.keys() - known), "")
            late = self._contradicting({to for to, _ in came})
            unsettled = late or self._is_unseen(step, came) or any(map(_is_passing, self.states.values()))
            if not unsettled or time.monotonic() > deadline:
                break
            came += self.answers({FOREVER}, 0.02)
        self.abandoned |= late
        new = {symbol: self.forms[symbol] for symbol in self.names.live if symbol not in known}
        if len(new) > 1:
            raise Dropped("two member ids at once")
        replies = [
            {"to": to, "response": self._written(to, message)} for to, message in sorted(came, key=lambda one: one[0])
        ]
        return {"replies": replies, "new": new, "state": self.states}

    def _pass_after_the_unanswered(self) -> None:
        """Send a Heartbeat of no member, which queues behind them and behind the records that their answers may wait for."""
        waiting = [line.step for lines in self.lines.values() for line in lines if line.step is not None]
        for group in {step["request"]["group_id"] for step in waiting if step["api"] in PARKED_IN}:
            stranger = HeartbeatRequest(group_id=self.names.living(group), generation_id=-1, member_id="ghost")
            self.control.ask(stranger, 0)

    def _is_unseen(self, step: Step, came: list[tuple[int, Message]]) -> bool:
        """Whether the step created a group that is not described yet."""
        group = step["request"].get("group_id")
        if step["api"] not in ("JoinGroup", "OffsetCommit") or self.states.get(group, {}).get("state") != "Dead":
            return False
        answer: Any = next((message for to, message in came if to == step["t"]), None)
        if isinstance(answer, JoinGroupResponse):
            return answer.error_code not in GROUP_NOT_CREATED
        if isinstance(answer, OffsetCommitResponse):
            return any(
                partition.error_code == ErrorCode.NONE for topic in answer.topics for partition in topic.partitions
            )
        return True

    def _contradicting(self, answered: set[int]) -> set[int]:
        """Unanswered requests that cannot be parked: not by a member of their group, or not in the state for it."""
        out = set()
        for step in (line.step for lines in self.lines.values() for line in lines if line.step is not None):
            group = self.states.get(step["request"].get("group_id", ""), DEAD)
            members = {member["member"] for member in group["members"]}
            parked = group["state"] == PARKED_IN.get(step["api"]) and self.owner[step["t"]] in members
            if not parked and step["t"] not in self.abandoned | answered:
                out.add(step["t"])
        return out

    def _name_new(self, messages: Iterable[Message]) -> None:
        found = [live for message in messages for live in over_socket._member_ids(message)]
        for live in dict.fromkeys(found):
            if live and live not in self.names.symbol and not live.startswith("ghost"):
                symbol = f"$M{len(self.forms) + 1}"
                self.names.bind(symbol, live)
                self.forms[symbol] = UUID_FORM.sub("*", live)

    def _written(self, to: int, message: Message) -> Any:
        step = self.asked[to]
        return replay._of_walk(self._form(message, step["version"]), step["api"], self.groups)


def _is_passing(state: dict[str, Any]) -> bool:
    """A rebalance without members is over at its timeout of 0."""
    return bool(state["state"] == "PreparingRebalance" and not state["members"])


def record_walk(address: Address, seed: int, attempt: int, patience: Patience) -> dict[str, Any]:
    """One walk in the form of the recordings. Raises Dropped if Kafka chose freely and differently from us."""
    walk = Walk(seed, attempt)
    choices = FreeChoices(walk.groups)
    steps: list[dict[str, Any]] = []
    with contextlib.closing(Recorder(address, walk.groups, patience)) as recorder:
        while (step := walk.next()) is not None:
            outcome = recorder.record(step)
            choices.judge(step, outcome, recorder.asked)
            walk.learn(outcome)
            steps.append(step | outcome)
    answered = {reply["to"] for step in steps for reply in step["replies"]}
    unanswered = [step["t"] for step in steps if step["t"] not in answered]
    return {"seed": seed, "attempt": attempt, "groups": walk.groups, "steps": steps, "unanswered": unanswered}


def record(
    address: Address, seeds: Iterable[int], patience: Patience | None = None, at_once: int = AT_ONCE
) -> Recording:
    """A walk for each seed; if one is dropped, the seed's next attempt is taken."""
    over_socket.make_topics(address, TOPICS)
    out = Recording([])

    def of_seed(seed: int) -> dict[str, Any] | None:
        for attempt in range(ATTEMPTS):
            try:
                return record_walk(address, seed, attempt, patience or Patience())
            except Dropped as reason:
                out.dropped[str(reason)] += 1
        out.given_up.append(seed)
        return None

    with ThreadPoolExecutor(at_once) as pool:
        out.walks += [walk for walk in pool.map(of_seed, seeds) if walk is not None]
    return out


def write(path: Path, walks: list[dict[str, Any]], settings: dict[str, int], recorded_from: str) -> None:
    header = {"format": "group-walks 1", "recorded_from": recorded_from, "topics": TOPICS, "settings": settings}
    lines = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in (header, *walks)).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(lines, mtime=0) if path.suffix == ".gz" else lines)
