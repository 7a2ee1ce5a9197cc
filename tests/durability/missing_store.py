"""Starts without a store beside segments: they are refused, and change no file."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.durability import images
from tests.durability.damage import Case
from tests.durability.damages import ENDS, MARKER, STORE, WAL, Damage
from tests.durability.parts import Violation
from tests.durability.spawning import Nursery
from tests.harness.wire_client import ConnectionClosed

# Formats before 4 call the commit marker `watermark`.
EVIDENCE = (MARKER, "watermark", ENDS, WAL, "lock", "last-run.json", "broker.log")
SHOWN = 12


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    """A round has the seed `seed + round`. Each removes the store and some of the files beside it."""
    figures: Counter[str] = Counter()
    failures: list[str] = []
    with Nursery() as nursery:
        for number in range(rounds):
            random = Random(seed + number)
            where = directory / str(seed + number)
            image = images.make(nursery, where / "image", random)
            # Every other round removes all evidence.
            gone = [name for name in EVIDENCE if number % 2 == 0 or random.random() < 0.5]
            case = Case(nursery, where, image, random, figures)
            try:
                case.take(remove(where / "data", gone))
                case.refuses_and_repairs()
            except (AssertionError, OSError, ConnectionClosed) as error:
                failures.append(
                    f"round {number} (seed {seed + number}; {case.damage}): {type(error).__name__}: {error}"
                )
                report(failures[-1])
            else:
                shutil.rmtree(where)
            figures["rounds"] += 1
    if failures:
        raise Violation(f"{len(failures)} of {rounds} rounds: " + " | ".join(failures[:SHOWN]))
    return dict(figures)


def remove(data_dir: Path, names: list[str]) -> Damage:
    """Remove the store and these files."""
    for name in (STORE, *names):
        (data_dir / name).unlink(missing_ok=True)
    return Damage([f"removed {', '.join((STORE, *names))}"], {STORE, *names})
