"""Plays recorded walks on our broker over sockets, step by step, and reports every difference."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from broker.local import LocalBroker
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from tests.harness.oracle.over_socket import address_of
from tests.harness.oracle.replay import Difference
from tests.harness.oracle.transactions.kafka import SETTINGS
from tests.harness.oracle.transactions.player import RESTART, WAIT, Address, Inconclusive, Player, State
from tests.harness.oracle.transactions.record import Recorded, full_states
from tests.harness.ports import kept_address
from tests.harness.wire_client import ConnectionClosed, WireClient

PATIENCE_S = 1.0  # how long the state may lag behind the answer
ATTEMPTS = 3  # for a walk with a short timeout, on a slow machine
UPGRADE, UNSAFE_DOWNGRADE = 1, 3
DEFAULT_LEVEL = 2


class Replay:
    """A walk that is being replayed. It pauses before each restart of the broker."""

    def __init__(self, address: Address, walk: Recorded) -> None:
        self.walk = walk
        self._steps = list(full_states(walk))
        self._at = 0
        self.player = Player(address, walk)
        self.differences: list[Difference] = self._compared("before", walk["before"], PATIENCE_S)

    def go_on(self) -> bool:
        """Play until the walk is over (False) or the broker must restart (True)."""
        while self._at < len(self._steps) and not self.differences:
            step = self._steps[self._at][0]
            if step["api"] == RESTART:
                self.player.disconnect()
                return True
            self._played()
        self.player.close()
        return False

    def restarted(self) -> None:
        self._played()

    def _played(self) -> None:
        step, _, after = self._steps[self._at]
        self._at += 1
        where = f"step {step['t']} {step['api']} v{step['version']}"
        begun = time.monotonic()
        if step["api"] != RESTART:
            try:
                response = self.player.play(step)
            except TimeoutError:
                response = "no answer"
            if response != step["response"]:
                self._found(f"{where}: answer", step["response"], response)
                self.player.disconnect()
        timeout_s = max([0, *self.walk["short"].values()]) / 1000 if step["api"] == WAIT else 0.0
        self.differences += self._compared(f"{where}: state after", after, timeout_s + PATIENCE_S)
        self.player.watch_deadlines(begun, after, self.walk["short"])

    def _compared(self, where: str, expected: State, patience_s: float) -> list[Difference]:
        deadline = time.monotonic() + patience_s
        while True:
            # The last look begins after the deadline: the broker may stand still for longer.
            is_last = time.monotonic() > deadline
            state = self.player.seen()
            if state == expected:
                return []
            if is_last:
                want = {key: value for key, value in expected.items() if state.get(key) != value}
                got = {key: value for key, value in state.items() if expected.get(key) != value}
                return [Difference(f"seed {self.walk['seed']} {where}", want, got)]
            time.sleep(0.005)

    def _found(self, where: str, expected: Any, got: Any) -> None:
        self.differences.append(Difference(f"seed {self.walk['seed']} {where}", expected, got))


def play_walks(address: Address, walks: Iterable[Recorded], restart: Callable[[], None]) -> list[Difference]:
    """The differences of the first step of each walk that has any; later ones are often only consequences."""
    out: list[Difference] = []
    waiting: list[Replay] = []

    def advance(replay: Replay, attempt: int = 1, restarted: bool = False) -> None:
        try:
            if restarted:
                replay.restarted()
            if replay.go_on():
                waiting.append(replay)
            else:
                out.extend(replay.differences)
        except Inconclusive as reason:
            replay.player.close()
            if attempt == ATTEMPTS:
                out.append(Difference(f"seed {replay.walk['seed']}", "a walk in time", str(reason)))
            else:
                advance(Replay(address, replay.walk), attempt + 1)
        except (ConnectionClosed, AssertionError, OSError) as error:
            out.append(Difference(f"seed {replay.walk['seed']} after step {replay._at}", "answers", repr(error)))
            replay.player.disconnect()

    for walk in walks:
        advance(Replay(address, walk))
    while waiting:
        restart()
        paused, waiting = waiting, []
        for replay in paused:
            advance(replay, restarted=True)
    return out


def on_our_broker(walks: Iterable[Recorded], transaction_version: int) -> list[Difference]:
    """The first differences of each walk on a broker that is started for this."""
    with LocalBroker(config=SETTINGS, listen=kept_address()) as broker:
        address = address_of(broker.bootstrap_servers)
        set_level(address, transaction_version)

        def restart() -> None:
            broker.kill()
            broker.start()

        return play_walks(address, walks, restart)


def set_level(address: Address, transaction_version: int) -> None:
    if transaction_version == DEFAULT_LEVEL:
        return
    update = UpdateFeaturesRequest.Update(
        feature="transaction.version", max_version_level=transaction_version, upgrade_type=UNSAFE_DOWNGRADE
    )
    with WireClient(address) as client:
        answer = client.ask(UpdateFeaturesRequest(feature_updates=[update]), 1)
    assert answer.error_code == 0, answer
