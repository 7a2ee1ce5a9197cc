"""Kafka's SharePartition as a program, and recordings of what it did."""

from __future__ import annotations

import json
import lzma
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.harness import oracle
from tests.harness.oracle.share_partition.ours import Player, comparable
from tests.harness.oracle.share_partition.walks import walk
from tests.harness.reference_kafka import Jars

SOURCE = Path(oracle.__file__).parent.parent / "java" / "SharePartitionPlayer.java"
RECORDED = Path(__file__).parent / "walks-4.1.jsonl.xz"
FINISHED = (2, 4)

Shown = dict[str, Any]


class KafkasPlayer:
    """Plays commands until the end of the block."""

    def __init__(self) -> None:
        command = Jars().command(str(SOURCE), heap="256m")
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> KafkasPlayer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._child.kill()
        self._child.communicate()

    def play(self, line: str) -> Shown:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        shown: Shown = json.loads(self._child.stdout.readline())
        return shown

    def walk(self, seed: int) -> Iterator[tuple[str, Shown]]:
        """The commands of a walk and what Kafka shows after each, up to where it fails."""
        start = 0
        for line, _ in walk(seed):
            shown = self.play(line)
            if line.startswith("new"):
                start = shown["start"]
            if _has_failed(line, shown, start):
                return
            start = shown["start"]
            yield line, shown


def _has_failed(line: str, shown: Shown, start: int) -> bool:
    """A request has no answer, the start offset moves back, or it cannot move: it is behind a batch with a state for each offset, or
    the partition is full of finished records.
    """
    if line.startswith(("ack", "release")) and shown["result"] is None:
        return True
    before = [batch for batch in shown["batches"] if batch[0] <= shown["start"]]
    if before and before[-1][1] < shown["start"] and not before[-1][2]:
        return True
    states = {state for batch in shown["batches"] for state, _, _ in batch[3]}
    return shown["start"] < start or (not shown["can"] and states <= set(FINISHED))


def difference(steps: Iterable[tuple[str, Shown]]) -> str | None:
    """The first step where ours shows something else."""
    ours = Player()
    for line, expected in steps:
        found = ours.play(line)
        left, right = comparable(line, expected), comparable(line, found)
        if left != right:
            parts = [f"{name}: {left[name]} / {right[name]}" for name in left if left[name] != right[name]]
            return "\n".join([line[:80], *parts])
    return None


def save(seeds: Iterable[int]) -> None:
    with KafkasPlayer() as kafka, lzma.open(RECORDED, "wt", preset=9) as file:
        for seed in seeds:
            file.write(json.dumps([seed, list(kafka.walk(seed))], separators=(",", ":")) + "\n")


def recorded() -> Iterator[tuple[int, list[tuple[str, Shown]]]]:
    with lzma.open(RECORDED, "rt") as file:
        for line in file:
            seed, steps = json.loads(line)
            yield seed, steps
