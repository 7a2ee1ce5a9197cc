"""`python -m tests.harness.oracle.transactions`: record what a real Kafka answers to transactional requests, and compare.

fresh [--seeds A-B] [--levels 0,1,2]        start Kafkas, record walks of fresh seeds, compare: part of make oracle
record --seeds A-B [--levels 0,1,2] [--out DIRECTORY]      record, without comparing
check FILE ...                              compare recordings on the core and over a socket
coverage FILE ...                           print which answers recordings contain
show FILE SEED                              print a walk
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.harness.oracle.transactions import coverage, fresh
from tests.harness.oracle.transactions.kafka import TRANSACTION_VERSIONS
from tests.harness.oracle.transactions.record import read, recording
from tests.harness.oracle.verdict import seeds_of, summed_up
from tests.harness.reference_kafka import Jars, Unavailable

WALKS = 60
OUT = Path("build") / "oracle"


def _levels_of(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _fresh(options: argparse.Namespace) -> int:
    first = int(time.time())
    seeds = options.seeds or range(first, first + WALKS)
    try:
        Jars()
    except Unavailable as reason:
        print(f"oracle: skipped, no real Kafka on this machine: {reason}")
        return 0
    name = f"{seeds[0]}-{seeds[-1]}"
    print(f"seeds {name} (to repeat: python -m tests.harness.oracle.transactions fresh --seeds {name})", flush=True)
    verdicts = []
    for level in options.levels:
        verdicts.append(fresh.record_and_check(seeds, level, options.out / f"transactions-{level}-{name}.jsonl.xz"))
        print("\n".join(verdicts[-1].lines()), flush=True)
    return summed_up(verdicts)


def _record(options: argparse.Namespace) -> int:
    for level in options.levels:
        path = options.out / recording(level).name
        made = fresh.record_fresh(options.seeds, level, path)
        steps = sum(len(walk["steps"]) for walk in made.walks)
        print(f"{path}: {len(made.walks)} walks, {steps} steps; dropped {dict(made.dropped)}, given up {made.given_up}")
    return 0


def _check(options: argparse.Namespace) -> int:
    verdicts = []
    for path in options.files:
        verdicts.append(fresh.check(path))
        print("\n".join(verdicts[-1].lines()), flush=True)
    return summed_up(verdicts)


def _coverage(options: argparse.Namespace) -> int:
    print("\n".join(coverage.lines([walk for path in options.files for walk in read(path)[1]])))
    return 0


def _show(options: argparse.Namespace) -> int:
    for walk in read(options.file)[1]:
        if walk["seed"] == options.seed:
            print({key: value for key, value in walk.items() if key != "steps"})
            for step in walk["steps"]:
                print(step["t"], step["client"], step["api"], f"v{step['version']}", json.dumps(step["request"]))
                print("    answer", json.dumps(step["response"]))
                print("    state ", json.dumps(step["state"]))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.harness.oracle.transactions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)

    def command(name: str, function: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        made = commands.add_parser(name)
        made.set_defaults(function=function)
        return made

    for name, function in (("fresh", _fresh), ("record", _record)):
        made = command(name, function)
        made.add_argument("--seeds", type=seeds_of, required=name == "record", help="FIRST-LAST")
        made.add_argument(
            "--levels", type=_levels_of, default=TRANSACTION_VERSIONS, help="levels of transaction.version"
        )
        made.add_argument("--out", type=Path, default=OUT, help=f"directory of the recordings ({OUT})")
    for name, function in (("check", _check), ("coverage", _coverage)):
        command(name, function).add_argument("files", type=Path, nargs="+")
    made = command("show", _show)
    made.add_argument("file", type=Path)
    made.add_argument("seed", type=int)
    options = parser.parse_args()
    return int(options.function(options))


if __name__ == "__main__":
    sys.exit(main())
