"""Recordings of walks, their making, and their comparison with another broker."""

from __future__ import annotations

import contextlib
import json
import lzma
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from broker.protocol.errors import ErrorCode
from tests.harness.oracle.replay import Difference
from tests.harness.oracle.share.record import prepare
from tests.harness.oracle.share_data.player import OF_KAFKA, OURS, Address, Inconclusive, Pace, Seen, playing
from tests.harness.oracle.share_data.walks import ALTERATIONS, Script, Walk

FORMAT = "share-data-walks 1"
RECORDINGS = Path(__file__).parent / "recordings"
RECORDING = RECORDINGS / "share-data-4.1.jsonl.xz"
# Kafka 4.1 does not alter offsets.
ALTERATION = RECORDINGS / "share-alteration-4.2.jsonl.xz"
AT_ONCE = 3
START_OFFSET = 3  # its place in what is seen of a state after partition and kind
Recorded = dict[str, Any]


def write(path: Path, walks: list[Recorded]) -> None:
    lines = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in ({"format": FORMAT}, *walks))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(lines.encode(), preset=9))


def read(path: Path) -> list[Recorded]:
    header, *walks = map(json.loads, lzma.decompress(path.read_bytes()).decode().splitlines())
    assert header["format"] == FORMAT, f"{path}: {header['format']}"
    return walks


def record(address: Address, seeds: Iterable[int], pace: Pace = OF_KAFKA) -> list[Recorded]:
    """A walk of each seed, without those that cannot be compared."""
    prepare(address)
    out: list[Recorded] = []

    def of_seed(seed: int) -> None:
        with contextlib.suppress(Inconclusive):
            out.append(_recorded(address, Walk(seed), seed, pace))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(of_seed, seeds))
    return sorted(out, key=lambda walk: walk["seed"])


def record_alterations(address: Address, pace: Pace = OF_KAFKA) -> Recorded:
    """Raises Inconclusive."""
    prepare(address)
    return _recorded(address, Script(ALTERATIONS), 0, pace)


def _recorded(address: Address, walk: Walk | Script, seed: int, pace: Pace) -> Recorded:
    steps = []
    starts: dict[int, int] = {}
    with playing(address, pace) as player:
        for move in walk.moves():
            seen = player.perform(move)
            if isinstance(seen["answer"], list) and seen["answer"][0] == ErrorCode.UNKNOWN_SERVER_ERROR:
                raise Inconclusive("Kafka fails")
            _refuse_steps_back(seen, starts)
            walk.learn(seen)
            steps.append({"move": move} | seen)
    return {"seed": seed, "steps": steps}


def _refuse_steps_back(seen: Seen, starts: dict[int, int]) -> None:
    """Kafka may move a start offset back when records behind the log start are acknowledged."""
    for partition, kind, *values in seen["states"]:
        if kind == "update":
            start_offset = values[START_OFFSET]
            if start_offset < starts.get(partition, start_offset):
                raise Inconclusive("Kafka moves a start offset back")
            starts[partition] = start_offset
        else:
            starts.pop(partition, None)


def play(address: Address, walks: Iterable[Recorded], pace: Pace = OURS) -> list[Difference]:
    """The differences of the first step of each walk that has any."""
    prepare(address)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [found for some in pool.map(lambda walk: _played(address, walk, pace), walks) for found in some]


def _played(address: Address, walk: Recorded, pace: Pace) -> list[Difference]:
    with playing(address, pace) as player:
        for number, step in enumerate(walk["steps"]):
            seen = player.perform(step["move"])
            found = [what for what in seen if seen[what] != step[what]]
            if found:
                where = f"seed {walk['seed']} step {number} {step['move']}"
                return [Difference(f"{where}: {what}", step[what], seen[what]) for what in found]
    return []
