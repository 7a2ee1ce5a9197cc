"""Generates a walk: each request is chosen by a seed and by the previous answers, so that groups reach every state.

Part of the requests are what a well-behaved client would send next; they drive groups from state to state. The others are sent in any
state (`out_of_turn`). In the end, all members leave and the groups are deleted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.harness.oracle.consumer.classic_members import ClassicMember
from tests.harness.oracle.consumer.forms import complete
from tests.harness.oracle.consumer.members import LEAVE, LEAVE_STATIC, Member
from tests.harness.oracle.consumer.names import MANY_MEMBERS, MEMBERS
from tests.harness.oracle.consumer.out_of_turn import ADMIN, HEARTBEAT, OutOfTurn
from tests.harness.oracle.consumer.player import RESTART, UNIT_S, WAIT
from tests.harness.oracle.consumer.producers import Producer

Fields = dict[str, Any]
Step = dict[str, Any]
Client = Member | ClassicMember | Producer
UNIT_MS = round(UNIT_S * 1000)
LONG_MS = (60_000, 300_000)
SESSION_MS = 60_000
SHORT_SESSION_MS = round(5.5 * UNIT_MS)
SHORT_MS = (round(2.5 * UNIT_MS), round(4.5 * UNIT_MS))
# Ids that the broker makes come after those of clients, and need room in Java's tables.
FEW_LITERALS = 4
PROTOCOLS = (["range"], ["cooperative-sticky", "range"], ["roundrobin"])


class Kind(NamedTuple):
    """What walks of a kind are like.

    `classic`: the share of clients that speak the classic protocol; `transactions`: that of requests of transactional producers;
    `restarts`: that of steps that kill and start the broker.
    """

    members: tuple[int, int]
    length: tuple[int, int]
    classic: float = 0.0
    own_topics: float = 0.0
    waits: float = 0.0
    with_regex: float = 0.25
    transactions: float = 0.0
    restarts: float = 0.0


KINDS = {
    "consumer": Kind((2, 5), (18, 46), own_topics=0.5),
    "migration": Kind((2, 4), (18, 44), classic=0.55),
    "max-size": Kind((3, 5), (18, 40)),
    "large": Kind((12, 26), (70, 130), with_regex=0.0),
    "transactional": Kind((2, 4), (24, 46), classic=0.3, with_regex=0.1, transactions=0.4),
    "restarts": Kind((2, 4), (24, 44), classic=0.4, with_regex=0.0, restarts=0.07),
    "timed": Kind((2, 4), (14, 34), classic=0.25, waits=0.35, with_regex=0.0),
}


class Walk:
    """A walk in the making: `next` returns the step to send, `learn` takes its outcome."""

    def __init__(self, seed: int, attempt: int, kind: str) -> None:
        self.rng = rng = random.Random(f"consumer groups {seed} attempt {attempt} kind {kind}")
        self.kind = KINDS[kind]
        if kind == "large":
            self.topics = rng.choice(({"$A": 17, "$B": 9, "$C": 0}, {"$A": 24, "$B": 0}, {"$A": 12, "$B": 12, "$C": 5}))
        else:
            self.topics = {"$A": rng.randint(1, 4), "$B": rng.choice((0, 1, 2, 3)), "$C": 0}
        self.counts = dict(self.topics)
        self.own_topics = rng.random() < self.kind.own_topics
        self.groups = ["$G1", "$G2"][: rng.choice((1, 1, 1, 2)) if kind != "large" else 1]
        self.joins_classic = self.kind.classic > 0
        self.length = rng.randint(*self.kind.length)
        self.order = rng.choice((0.5, 0.65, 0.8, 0.9)) if kind != "large" else 0.95
        ids = MANY_MEMBERS if kind == "large" else MEMBERS
        self.literals = len(MANY_MEMBERS) if kind == "large" else FEW_LITERALS if self.kind.classic else len(MEMBERS)
        self.members: list[Member] = []
        self.classic_members: list[ClassicMember] = []
        self.producers = [Producer(rng, number) for number in (1, 2)] if self.kind.transactions else []
        protocols = rng.choice(PROTOCOLS)
        for number in range(rng.randint(*self.kind.members)):
            group = rng.choice(self.groups)
            if number < self.literals:
                self._add(number, ids[number], group, protocols)
        self.number = 0
        self.state: dict[str, Any] = {group: {"type": "", "state": "Dead", "members": {}} for group in self.groups}
        self._out_of_turn = OutOfTurn(self)
        self._ending: Iterator[Step] | None = None
        self._asked: dict[int, tuple[Step, Client | None]] = {}

    def _add(self, number: int, member_id: str, group: str, protocols: list[str]) -> None:
        rng, is_short = self.rng, self.kind.waits > 0
        timeouts = SHORT_MS if is_short else LONG_MS
        topics = [*self.topics] if rng.random() < 0.6 else ["$A", "$B"]
        if rng.random() < self.kind.classic:
            session = SHORT_SESSION_MS if is_short else SESSION_MS
            classic = ClassicMember(rng, number, member_id, group, protocols, (session, timeouts))
            classic.subscribe(rng, topics)
            self.classic_members.append(classic)
            return
        member = Member(rng, number, member_id, group, timeouts)
        if self.literals > FEW_LITERALS:
            member.member_id = member_id  # no room for ids of the broker
        member.subscribe(rng, topics, self.kind.with_regex)
        self.members.append(member)

    # ---- steps

    def next(self) -> Step | None:
        """The next step; None if the walk is over."""
        if self.number < self.length:
            while (found := self._chosen()) is None:
                pass
            return found
        if self._ending is None:
            self._ending = self._last_steps()
        return next(self._ending, None)

    def _chosen(self) -> Step | None:
        rng = self.rng
        if rng.random() < self.kind.waits:
            return self._step(ADMIN, WAIT, 0, {"units": rng.choice((1, 1, 2, 2, 3, 6))})
        if rng.random() < self.kind.restarts and self._is_stored():
            return self._step(ADMIN, RESTART, 0, {})
        if rng.random() < self.kind.transactions and self.members:
            if rng.random() < 0.15:
                return self._step(ADMIN, "OffsetFetch", 8, self._fetch_stable())
            producer = rng.choice(self.producers)
            api, version, fields = producer.next(rng, self._out_of_turn.committed())
            return self._step(producer.name, api, version, fields, producer)
        if rng.random() >= self.order and self.members:
            found = self._out_of_turn.next()
            return None if found is None else self._step(*found)
        clients: list[Member | ClassicMember] = [*self.members, *self.classic_members]
        one = rng.choice(clients)
        if isinstance(one, Member):
            return self._of_member(one)
        if one.is_waiting:
            return None
        one.counts = self.counts
        leaves = one.is_joined and rng.random() < 0.06
        rejoins = one.is_synced and rng.random() < 0.06
        if rejoins:
            one.subscribe(rng, [*self.topics])
        api, version, fields = (one.leaving if leaves else one.joining if rejoins else one.next)(rng)
        return self._step(one.name, api, version, fields, one)

    def _is_stored(self) -> bool:
        """No classic group rebalances, or keeps an id for a client: a restart ends that."""
        is_promised = any(one.member_id and not one.is_joined and not one.first_id for one in self.classic_members)
        return not is_promised and all(
            found["state"] not in ("PreparingRebalance", "CompletingRebalance") for found in self.state.values()
        )

    def _fetch_stable(self) -> Fields:
        """Pending offsets make it fail."""
        return {"require_stable": True, "groups": [{"group_id": group, "topics": None} for group in self.groups]}

    def _of_member(self, member: Member) -> Step:
        rng = self.rng
        if member.epoch > 0 and rng.random() < 0.06:
            is_static = member.instance is not None and rng.random() < 0.7
            fields = member.leaving(LEAVE_STATIC if is_static else LEAVE)
            if is_static and rng.random() < 0.5:
                self._succeed(member)
        elif member.epoch > 0 and rng.random() < 0.1:
            fields = member.changed(rng, [*self.topics], self.kind.with_regex)
        else:
            fields = member.next(rng)
        return self._step(member.name, HEARTBEAT, member.version, fields, member)

    def _succeed(self, member: Member) -> None:
        """Another client gets the instance id, as after a restart of the program."""
        others = [one for one in self.members if one.epoch <= 0 and one is not member]
        if others:
            self.rng.choice(others).instance = member.instance

    def _step(self, client: str, api: str, version: int, fields: Fields, sender: Client | None = None) -> Step:
        self.number += 1
        request = fields if api in (WAIT, RESTART) else complete(api, version, fields)
        step = {"t": self.number, "client": client, "api": api, "version": version, "request": request}
        if isinstance(sender, ClassicMember):
            sender.is_waiting = True
        elif sender is None and api == HEARTBEAT:
            # The client of a wrong request learns from the answer, too.
            sender = next((one for one in self.members if one.name == client), None)
        self._asked[self.number] = step, sender
        return step

    def _last_steps(self) -> Iterator[Step]:
        """Administrators remove all members, look at the groups, and delete them."""
        for group in self.groups:
            for member_id, member in sorted(self.state[group]["members"].items()):
                if self.state[group]["type"] == "consumer" and member["type"] == 1:
                    fields: Fields = {"group_id": group, "member_id": member_id, "member_epoch": LEAVE}
                    yield self._step(ADMIN, HEARTBEAT, 1, fields)
                else:
                    one = {"member_id": member_id, "group_instance_id": None}
                    yield self._step(ADMIN, "LeaveGroup", 5, {"group_id": group, "members": [one]})
        described = {"group_ids": self.groups, "include_authorized_operations": False}
        yield self._step(ADMIN, "ConsumerGroupDescribe", 1, described)
        yield self._step(ADMIN, "ListGroups", 5, {"states_filter": [], "types_filter": []})
        yield self._step(ADMIN, "DeleteGroups", 2, {"groups_names": self.groups})

    # ---- outcomes

    def learn(self, replies: list[dict[str, Any]], state: dict[str, Any]) -> None:
        self.state = state
        for reply in replies:
            step, sender = self._asked[reply["to"]]
            answer = reply["response"]
            if isinstance(sender, Member):
                self._learn_beat(sender, step, answer)
            elif isinstance(sender, ClassicMember):
                sender.learn(step["api"], answer)
            elif isinstance(sender, Producer):
                sender.learn(step["api"], step["version"], answer)
            elif step["api"] in ("CreateTopics", "CreatePartitions", "DeleteTopics"):
                self._learn_topics(step, answer)

    def _learn_beat(self, member: Member, step: Step, answer: Fields) -> None:
        if step["request"]["member_id"] == member.member_id:
            member.learn(step["request"], answer)

    def _learn_topics(self, step: Step, answer: Fields) -> None:
        rows = answer.get("topics") or answer.get("results") or answer.get("responses") or []
        wanted = {one["name"]: one for one in step["request"].get("topics", ())}
        for row in rows:
            if not row["error_code"]:
                asked = wanted.get(row["name"], {})
                self.counts[row["name"]] = asked.get("num_partitions", asked.get("count", 0))
