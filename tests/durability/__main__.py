"""`python -m tests.durability kills --rounds 100 --seed 7`: break a broker repeatedly and verify its promises."""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.durability.parts import PARTS, Violation
from tests.durability.spawning import memory


def main() -> int:
    parts = "; ".join(f"{name}: {part.about}, {part.rounds} rounds" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(prog="python -m tests.durability", description=__doc__, epilog=parts)
    parser.add_argument("parts", nargs="*", metavar="PART", help="default: all parts")
    parser.add_argument("--rounds", type=int, help="of each part (default: see below)")
    parser.add_argument("--seed", type=int, help="chooses what happens and when (default: a new one)")
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    seed = secrets.randbelow(1_000_000) if given.seed is None else given.seed
    ended_well = [_run(name, seed, given.rounds) for name in given.parts or PARTS]
    return 0 if all(ended_well) else 1


def _run(name: str, seed: int, rounds: int | None) -> bool:
    """Run one part and print its figures as a line of JSON; False after a violation."""
    part = PARTS[name]
    rounds = part.rounds if rounds is None else rounds
    directory = Path(
        tempfile.mkdtemp(prefix=f"kgctl-durability-{name}-{seed}-", dir=memory() if part.in_memory else None)
    )
    _print(f"{name}: seed {seed}, {rounds} rounds, in {directory}")
    try:
        figures = part.run(directory, seed, rounds, _print)
    except Violation as violation:
        _print(f"{name}: FAILED with seed {seed} in {violation}")
        _print(f"kept: {directory}")
        print(json.dumps({"part": name, "seed": seed, "failed": str(violation)}))
        return False
    shutil.rmtree(directory)
    print(json.dumps({"part": name, "seed": seed, **figures}))
    return True


def _print(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
