"""Plays recorded walks on a running broker over sockets, step by step, and reports every difference."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from broker.local import LocalBroker
from tests.harness.oracle.consumer import forms, stored
from tests.harness.oracle.consumer.files import Recorded, State, Step, full_states
from tests.harness.oracle.consumer.player import ENDS_OF_TRANSACTIONS, Inconclusive, Player
from tests.harness.oracle.consumer.topics import TopicSets
from tests.harness.oracle.over_socket import Address, address_of
from tests.harness.oracle.replay import Difference

PATIENCE_S = 1.0  # how long state and records may lag behind the answer
ATTEMPTS = 200  # for a walk whose ids come in another order, or whose timeouts come early
AT_ONCE = 4


def play_walk(address: Address, walk: Recorded, sets: TopicSets) -> list[Difference]:
    """The differences of the first step that has any; later ones are often only consequences."""
    reason = ""
    for _ in range(ATTEMPTS):
        try:
            with contextlib.closing(Player(address, walk, sets)) as player:
                for step, before, after in full_states(walk):
                    found = _compared(player, step, before, after)
                    if found:
                        where = f"seed {walk['seed']} step {step['t']} {step['api']} v{step['version']}"
                        return [Difference(f"{where}: {what}", want, got) for what, want, got in found]
            return []
        except Inconclusive as why:
            reason = str(why)
    return [Difference(f"seed {walk['seed']}", "a walk that can be compared", reason)]


def _compared(player: Player, step: Step, before: State, after: State) -> list[tuple[str, Any, Any]]:
    replies = player.perform(step, {reply["to"] for reply in step["replies"]})
    # Kafka's log has pending offsets and then marks them; ours has them when they are committed.
    want = stored.in_runs([one for one in stored.of_committed(step, before) if one[-1] != stored.PENDING])
    ends_transaction = step["api"] in ENDS_OF_TRANSACTIONS
    records: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S
    while True:
        # The last look begins after the deadline: the broker may stand still for longer.
        is_last = time.monotonic() > deadline
        found = [one for one in player.records() if not ends_transaction or one[0] != stored.OFFSET]
        records = stored.in_runs(records + found)
        state = player.state()
        if is_last or (len(records) >= len(want) and forms.is_alike(after, state)):
            break
        time.sleep(0.005)
    replies += player.answers(set(), 0)
    player.watch_time()
    results = (("answers", step["replies"], replies), ("records", want, records), ("state after", after, state))
    return [(what, wanted, got) for what, wanted, got in results if not forms.is_alike(wanted, got)]


def on_our_broker(header: dict[str, Any], walks: Iterable[Recorded], at_once: int = AT_ONCE) -> list[Difference]:
    """The first differences of each walk on a broker that is started for this."""
    with LocalBroker(config=header["settings"]) as broker, ThreadPoolExecutor(at_once) as pool:
        address = address_of(broker.bootstrap_servers)
        sets = TopicSets(address)
        return [found for some in pool.map(lambda walk: play_walk(address, walk, sets), walks) for found in some]
