"""Generates a walk: each request is chosen by a seed and by the previous answers, so that transactions reach every state.

Part of the requests are what a well-behaved client would send next; they drive transactions from state to state. The
others are sent in any state: valid ones out of turn, wrong ones, and those of other clients and of administrators.
"""

from __future__ import annotations

import random
from typing import Any

from tests.harness.oracle.transactions.forms import complete
from tests.harness.oracle.transactions.members import Members
from tests.harness.oracle.transactions.moves import ADMIN, Onward
from tests.harness.oracle.transactions.out_of_turn import OutOfTurn
from tests.harness.oracle.transactions.player import HISTORY, RESTART, WAIT
from tests.harness.oracle.transactions.producers import LAST_EPOCH, Place, Producer, Producers, Step

WITHOUT_REQUEST = (RESTART, WAIT, HISTORY)
SHORT_MS = 1_500
STEPS_IN_SHORT = 3  # a transaction with a short timeout gets no more steps before the walk waits for its timeout


class Walk:
    """A walk in the making: `next` returns the step to send, `learn` takes its outcome."""

    def __init__(self, seed: int, attempt: int = 0, transaction_version: int = 2, *, exhausts: bool = False) -> None:
        """`exhausts`: the only transactional id begins shortly before the end of its epochs."""
        self.rng = rng = random.Random(f"transactions {seed} attempt {attempt} version {transaction_version}")
        self.seed, self.attempt = seed, attempt
        self.transactional_ids = [f"$T{number}" for number in range(1, rng.choice((1, 1, 2, 2, 3)) + 1)]
        self.epochs = {"$T1": LAST_EPOCH - rng.randint(2, 8)} if exhausts else {}
        if exhausts:
            self.transactional_ids = ["$T1"]
        self.groups = ["$G1", "$G2"][: rng.choice((1, 1, 2))]
        self.topics = {"$A": rng.choice((1, 2, 2)), "$B": 1}
        self.length = rng.randint(18, 44)
        self.order = rng.choice((0.3, 0.5, 0.5, 0.7, 0.9))  # the share of well-behaved requests
        self.destruction = rng.choice((0.0, 0.0, 0.0, 1.0, 3.0))
        self.restarts_at = rng.randint(8, self.length) if rng.random() < 0.15 else 0
        # A restart takes longer than a short timeout.
        self.short = {"$T1": SHORT_MS} if not self.restarts_at and not exhausts and rng.random() < 0.1 else {}
        # With level 0, a client of level 2 blocks its transactional id for ever.
        self.takes_implicit = transaction_version > 0
        explicit = ["first", "recovering", "recovering", "verified"]
        ages = ["implicit"] if rng.random() < (0.0, 0.15, 0.65)[transaction_version] else [rng.choice(explicit)]
        ages += [rng.choice([*explicit, *["implicit"] * self.takes_implicit])] if rng.random() < 0.25 else []
        self.producers = Producers(rng, self.transactional_ids, ages, self.short)
        self.members = Members(rng, self.groups)
        self.state: dict[str, Any] = {}
        self.number = 0
        self._sent: tuple[Step, Producer | None] | None = None
        self._ending: list[Step] | None = None
        self._onward, self._out_of_turn = Onward(self), OutOfTurn(self)
        self.is_first_coordinator = True  # the broker has not restarted
        self._ongoing_since: dict[str, int] = {}

    @property
    def alive(self) -> list[str]:
        """Topics that are not deleted."""
        return [topic for topic in self.topics if not isinstance(self.state.get(f"{topic}-0"), int)]

    @property
    def places(self) -> list[Place]:
        alive = self.alive if self.rng.random() < 0.85 else list(self.topics)
        return [(topic, partition) for topic in alive or self.topics for partition in range(self.topics[topic])]

    def current(self, transactional_id: str | None) -> tuple[str | int, int] | None:
        """The producer id and epoch that the coordinator has."""
        found = self.state.get(transactional_id or "")
        return (found[1], found[2]) if isinstance(found, list) else None

    def next(self) -> Step | None:
        """The next step; None if the walk is over."""
        if self.number < self.length:
            return self._chosen()
        if self._ending is None:
            self._ending = list(self._last_steps())
        if not self._ending:
            return None
        self.number += 1
        return self._ending.pop(0) | {"t": self.number}

    def learn(self, step: Step, response: Any, state: dict[str, Any]) -> None:
        """Take in the response and the parts of the state that have changed."""
        self.state |= state
        if self._sent is not None and self._sent[0] is step:
            self.producers.learn(self._sent[1], step, response)
        self.members.learn(step, response)
        for name in self.short:
            found = self.state.get(name)
            if isinstance(found, list) and found[0] == "Ongoing":
                self._ongoing_since.setdefault(name, self.number)
            else:
                self._ongoing_since.pop(name, None)

    def _chosen(self) -> Step:
        if self.number + 1 == self.restarts_at:
            return self.step(ADMIN, RESTART, 0)
        if any(self.number - since >= STEPS_IN_SHORT for since in self._ongoing_since.values()):
            return self.step(ADMIN, WAIT, 0)
        while True:
            producer = self.rng.choice(self.producers.all)
            before = self.number
            share = self.order if producer.is_known else 0.85
            moves = self._onward if self.rng.random() < share else self._out_of_turn
            made = moves.step(producer)
            if made is not None:
                if made is not (self._sent or (None,))[0]:
                    self._sent = made, None
                return made
            self.number = before

    def step(self, sender: Producer | str, api: str, version: int, **fields: Any) -> Step:
        self.number += 1
        step = {
            "t": self.number,
            "client": sender if isinstance(sender, str) else sender.client,
            "api": api,
            "version": version,
            "request": {} if api in WITHOUT_REQUEST else complete(api, version, fields),
        }
        self._sent = step, None if isinstance(sender, str) else sender
        return step

    def weighed(self, *choices: tuple[float, Any]) -> Any:
        return self.rng.choices([choice for _, choice in choices], [weight for weight, _ in choices])[0]

    @property
    def has_restarted(self) -> bool:
        return not self.is_first_coordinator or 0 < self.restarts_at <= self.number

    def _last_steps(self) -> list[Step]:
        """Read everything."""
        number, steps = self.number, []
        if self._ongoing_since:
            steps.append(self.step(ADMIN, WAIT, 0))
        for isolation in (0, 1):
            topics = [
                {
                    "topic": topic,
                    "partitions": [
                        {"partition": one, "fetch_offset": self._start(topic, one), "partition_max_bytes": 1 << 20}
                        for one in range(self.topics[topic])
                    ],
                }
                for topic in self.alive
            ]
            fields = {"max_wait_ms": 0, "min_bytes": 0, "isolation_level": isolation, "topics": topics}
            steps.append(self.step(ADMIN, "Fetch", 11, **fields))
        steps.append(self.step(ADMIN, "ListTransactions", 2, state_filters=[], producer_id_filters=[]))
        if not self.epochs:
            steps.append(self.step(ADMIN, HISTORY, 0))
        self.number = number
        return steps

    def _start(self, topic: str, partition: int) -> int:
        found = self.state.get(f"{topic}-{partition}")
        return found[2] if isinstance(found, list) else 0
