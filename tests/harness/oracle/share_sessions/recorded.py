"""The recorded walks: a line of JSON for each, with the seed and the lines of a real Kafka."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.harness.oracle.share_sessions.walk import Walk
from tests.harness.share_member import enable_share_groups
from tests.harness.wire_client import WireClient

RECORDING = Path(__file__).with_name("walks-4.1.jsonl.xz")
STEPS = 40


class Recorded(NamedTuple):
    seed: int
    lines: list[str]


def record(address: tuple[str, int], seeds: Sequence[int]) -> list[Recorded]:
    """Take the walks on a Kafka."""
    with WireClient(address) as client:
        enable_share_groups(client)
    return [Recorded(seed, Walk(address, seed, is_kafka=True).run(STEPS)) for seed in seeds]


def save(walks: Sequence[Recorded]) -> None:
    text = "".join(json.dumps(walk) + "\n" for walk in walks)
    RECORDING.write_bytes(lzma.compress(text.encode(), preset=9))


def recorded() -> Iterator[Recorded]:
    for line in lzma.decompress(RECORDING.read_bytes()).decode().splitlines():
        yield Recorded(*json.loads(line))


def difference(address: tuple[str, int], walk: Recorded) -> str | None:
    """The first line of this broker that is another one, after the lines before it; None if there is none."""
    lines = Walk(address, walk.seed, is_kafka=False).run(STEPS)
    for place, (theirs, ours) in enumerate(zip(walk.lines, lines, strict=False)):
        if theirs != ours:
            before = walk.lines[max(0, place - 10) : place]
            return "\n".join([f"seed {walk.seed}, step {place}", *before, f"- {theirs}", f"+ {ours}"])
    return None if len(lines) == len(walk.lines) else f"seed {walk.seed}: {len(walk.lines)} lines became {len(lines)}"
