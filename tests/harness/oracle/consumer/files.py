"""Recordings of walks: a header, and a line for each walk."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMAT = "consumer-group-walks 1"
RECORDINGS = Path(__file__).parent / "recordings"
Recorded = dict[str, Any]
Step = dict[str, Any]
State = dict[str, Any]


def recording(kind: str) -> Path:
    """A recording of a real Kafka that is kept for tests."""
    return RECORDINGS / f"{kind}-4.1.jsonl.xz"


def write(path: Path, header: dict[str, Any], walks: list[Recorded]) -> None:
    lines = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in ({"format": FORMAT} | header, *walks))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(lines.encode(), preset=9))


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
