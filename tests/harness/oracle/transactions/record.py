"""Plays walks on a running broker while generating them, and writes its answers in the form of the recordings.

One request at a time: a real Kafka verifies the producers of several requests together, and mixes up their errors.
"""

from __future__ import annotations

import json
import lzma
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.harness.oracle.record import Recording
from tests.harness.oracle.transactions import accidents
from tests.harness.oracle.transactions.generate import Walk
from tests.harness.oracle.transactions.player import RESTART, WAIT, Address, Inconclusive, Player, State, Step

FORMAT = "transaction-walks 1"
RECORDINGS = Path(__file__).parent / "recordings"
ATTEMPTS = 8
# The state of a group with one member.
STATE_AFTER = {"JoinGroup": "CompletingRebalance", "SyncGroup": "Stable", "LeaveGroup": "Empty"}
Recorded = dict[str, Any]


class Recorder:
    """A walk that is being recorded. It pauses before each restart of the broker."""

    def __init__(
        self, address: Address, seed: int, attempt: int, transaction_version: int, *, exhausts: bool = False
    ) -> None:
        self.walk = Walk(seed, attempt, transaction_version, exhausts=exhausts)
        self.header = {
            "seed": seed,
            "attempt": attempt,
            "topics": self.walk.topics,
            "groups": self.walk.groups,
            "transactional_ids": self.walk.transactional_ids,
            "short": self.walk.short,
            "epochs": self.walk.epochs,
        }
        self.player = Player(address, self.header)
        self.steps: list[Step] = []
        self.state: State = {}
        self._changed(self.player.settled())
        self.before = dict(self.state)
        self.walk.state = dict(self.state)

    def go_on(self) -> bool:
        """Play until the walk is over (False) or the broker must restart (True)."""
        while (step := self.walk.next()) is not None:
            if step["api"] == RESTART:
                self._pending = step
                self.player.disconnect()
                return True
            self._played(step)
        self.player.close()
        return False

    def restarted(self) -> None:
        self._played(self._pending, restarted=True)

    def recorded(self) -> Recorded:
        return {**self.header, "before": self.before, "steps": self.steps}

    def _played(self, step: Step, restarted: bool = False) -> None:
        begun = time.monotonic()
        response = None if restarted else self.player.play(step)
        settled = self.player.settled(self._until(step, response))
        if step["api"] == "DeleteTopics":
            # Groups forget its offsets a moment later.
            time.sleep(0.2)
            settled = self.player.settled(self._until(step, response))
        self.player.watch_deadlines(begun, settled, self.walk.short)
        accidents.refuse(step, response, self.state, settled, self.walk.groups)
        changed = self._changed(settled)
        self.walk.learn(step, response, changed)
        self.steps.append(step | {"response": response, "state": changed})

    def _until(self, step: Step, response: Any) -> Callable[[State], bool]:
        if step["api"] == WAIT:
            return lambda state: all(
                not isinstance(state[name], list) or state[name][0] != "Ongoing" for name in self.walk.short
            )
        if step["api"] == "DeleteTopics":
            return lambda state: all(isinstance(state[f"{one}-0"], int) for one in self.player.deleted)
        reached = STATE_AFTER.get(step["api"])
        if reached and isinstance(response, dict) and response["error_code"] == 0:
            # Kafka answers before the group can be described.
            return lambda state: state.get(step["request"]["group_id"], [reached])[0] == reached
        return lambda _: True

    def _changed(self, state: State) -> State:
        changed = {key: value for key, value in state.items() if self.state.get(key) != value}
        self.state = state
        return changed


def record(
    address: Address, seeds: Iterable[int], transaction_version: int, restart: Callable[[], None] | None = None
) -> Recording:
    """A walk for each seed; if one is inconclusive, the seed's next attempt is taken."""
    out = Recording([])
    found: dict[int, Recorded] = {}
    paused: list[Recorder] = []
    restarts = 0

    def advance(recorder: Recorder, restarted: bool = False) -> None:
        try:
            if restarted:
                recorder.restarted()
            if recorder.go_on():
                paused.append(recorder)
            else:
                found[recorder.walk.seed] = recorder.recorded()
        except Inconclusive as reason:
            out.dropped[str(reason)] += 1
            recorder.player.close()
            begin(recorder.walk.seed, recorder.walk.attempt + 1)

    def begin(seed: int, attempt: int) -> None:
        if attempt == ATTEMPTS:
            out.given_up.append(seed)
            return
        recorder = Recorder(address, seed, attempt, transaction_version)
        recorder.walk.is_first_coordinator = not restarts
        if restart is None:
            recorder.walk.restarts_at = 0
        advance(recorder)

    seeds = list(seeds)
    for seed in seeds:
        begin(seed, 0)
    while paused:
        assert restart is not None
        restart()
        restarts += 1
        waiting, paused = paused, []
        for recorder in waiting:
            advance(recorder, restarted=True)
    out.walks = [found[seed] for seed in seeds if seed in found]
    return out


def record_exhausted(address: Address, seeds: Iterable[int], transaction_version: int) -> Recording:
    """Walks of producers whose epochs come to an end. Using them up takes a minute."""

    def begun(seed: int) -> Recorder:
        recorder = Recorder(address, seed, 0, transaction_version, exhausts=True)
        recorder.walk.restarts_at = 0
        return recorder

    out = Recording([])
    with ThreadPoolExecutor() as pool:
        recorders = list(pool.map(begun, seeds))
    for recorder in recorders:
        try:
            recorder.go_on()
            out.walks.append(recorder.recorded())
        except Inconclusive as reason:
            out.dropped[str(reason)] += 1
    return out


def write(path: Path, header: dict[str, Any], walks: list[Recorded]) -> None:
    lines = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in ({"format": FORMAT} | header, *walks))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(lines.encode(), preset=9))


def recording(transaction_version: int, kind: str = "level") -> Path:
    """A recording of a real Kafka that is kept for tests."""
    return RECORDINGS / f"{kind}-{transaction_version}-4.1.jsonl.xz"


def read(path: Path) -> tuple[dict[str, Any], list[Recorded]]:
    header, *walks = map(json.loads, lzma.decompress(path.read_bytes()).decode().rstrip("\n").split("\n"))
    assert header["format"] == FORMAT, f"{path}: {header['format']}"
    return header, walks


def full_states(walk: Recorded) -> Iterator[tuple[Step, State, State]]:
    """Each step with the whole state before and after it."""
    state = dict(walk["before"])
    for step in walk["steps"]:
        after = state | step["state"]
        yield step, state, after
        state = after


__all__ = ["full_states", "read", "record", "recording", "write"]
