"""`python -m tests.durability --cycles 100 --seed 7`: kill a broker repeatedly under real clients and verify its promises."""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from broker.local import DURABILITIES
from tests.durability.cycles import Run, Violation
from tests.durability.victim import Victim


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.durability", description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seed", type=int, help="chooses the times of the kills (default: a new one)")
    parser.add_argument("--durability", choices=DURABILITIES, default="power", help="of the broker (default: power)")
    given = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if given.seed is None else given.seed
    directory = Path(tempfile.mkdtemp(prefix=f"kgctl-durability-{seed}-"))
    _print(f"seed {seed}, {given.cycles} cycles, durability {given.durability}, in {directory}")
    run = Run(directory, seed, Victim(directory, durability=given.durability), _print)
    try:
        run.run(given.cycles)
    except Violation as violation:
        _print(f"FAILED with seed {seed} in {violation}")
        _print(f"kept: {directory}")
        print(json.dumps({**run.summary.rows(), "failed": str(violation)}))
        return 1
    shutil.rmtree(directory)
    print(json.dumps(run.summary.rows()))
    return 0


def _print(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
