"""The outcome of comparing recorded walks with our broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness.oracle.record import Recording
from tests.harness.oracle.replay import Difference


@dataclass
class Verdict:
    """The outcome of a recording."""

    path: Path
    walks: list[dict[str, Any]]
    core: list[Difference]
    socket: list[Difference]
    remarks: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return sum(len(walk["steps"]) for walk in self.walks)

    @property
    def differences(self) -> list[Difference]:
        return self.core + self.socket

    def remark(self, made: Recording) -> None:
        """Say which attempts the recording left out."""
        self.remarks += [f"{count} attempts dropped: {why}" for why, count in sorted(made.dropped.items())]
        self.remarks += [f"seeds given up: {made.given_up}"] if made.given_up else []

    def lines(self) -> Iterator[str]:
        yield f"{self.path}: {len(self.walks)} walks, {self.steps} steps" + "".join(f"; {one}" for one in self.remarks)
        for name, found in (("on the core", self.core), ("over a socket", self.socket)):
            yield f"{name}: {len(found)} differences"
            yield from map(str, found[:5])


def summed_up(verdicts: Sequence[Verdict]) -> int:
    """Print the sums, and return the exit code."""
    walks, steps = sum(len(one.walks) for one in verdicts), sum(one.steps for one in verdicts)
    differences = sum(len(one.differences) for one in verdicts)
    print(f"{walks} walks, {steps} steps, each on the core and over a socket: {differences} differences")
    # If every attempt was dropped, nothing was compared.
    return 1 if differences or not walks else 0


def seeds_of(text: str) -> range:
    """`A-B` or `A`, as command lines name seeds."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)
