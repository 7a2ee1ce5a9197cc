"""`python -m tests.harness.oracle.consumer`: record walks of consumer groups from a real Kafka, and compare.

fresh [--seeds A-B] [--kinds consumer,migration]      start Kafkas, record walks of fresh seeds, compare: make oracle
record --seeds A-B [--kinds ...] [--out DIRECTORY]    record, without comparing
check FILE ...                                        compare recordings on the core and over a socket
core FILE ...                                         compare recordings on the core only
coverage FILE ...                                     print which answers recordings contain
show FILE SEED                                        print a walk
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.harness.oracle.consumer import coverage, fresh
from tests.harness.oracle.consumer.files import read, recording
from tests.harness.oracle.consumer.scenarios import SCENARIOS
from tests.harness.oracle.verdict import seeds_of, summed_up
from tests.harness.reference_kafka import Jars, Unavailable

# By kind. Walks with timeouts take half a minute each, and an idle machine.
WALKS = {
    "consumer": 40,
    "migration": 30,
    "transactional": 20,
    "max-size": 10,
    "large": 6,
    "timed": 4,
    "scenarios": len(SCENARIOS),
}
OUT = Path("build") / "oracle"


def _kinds_of(text: str) -> tuple[str, ...]:
    kinds = tuple(text.split(","))
    unknown = set(kinds) - WALKS.keys()
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(WALKS)}")
    return kinds


def _fresh(options: argparse.Namespace) -> int:
    try:
        Jars()
    except Unavailable as reason:
        print(f"oracle: skipped, no real Kafka on this machine: {reason}")
        return 0
    first = int(time.time())
    verdicts = []
    for kind in options.kinds:
        seeds = options.seeds or range(first, first + WALKS[kind])
        name = f"{seeds[0]}-{seeds[-1]}"
        again = f"python -m tests.harness.oracle.consumer fresh --kinds {kind} --seeds {name}"
        print(f"{kind}: seeds {name} (to repeat: {again})", flush=True)
        path = options.out / f"consumer-groups-{kind}-{name}.jsonl.xz"
        verdicts.append(fresh.record_and_check(seeds, kind, path))
        print("\n".join(verdicts[-1].lines()), flush=True)
    return summed_up(verdicts)


def _record(options: argparse.Namespace) -> int:
    for kind in options.kinds:
        path = options.out / recording(kind).name
        made = fresh.record_fresh(options.seeds, kind, path)
        steps = sum(len(walk["steps"]) for walk in made.walks)
        print(f"{path}: {len(made.walks)} walks, {steps} steps; dropped {dict(made.dropped)}, given up {made.given_up}")
    return 0


def _check(options: argparse.Namespace) -> int:
    verdicts = []
    for path in options.files:
        verdicts.append(fresh.check(path))
        print("\n".join(verdicts[-1].lines()), flush=True)
    return summed_up(verdicts)


def _core(options: argparse.Namespace) -> int:
    differing = 0
    for path in options.files:
        header, walks = read(path)
        found = [differences for walk in walks if (differences := fresh.core_differences(header, walk))]
        differing += len(found)
        print(f"{path}: {len(walks)} walks, {sum(len(one['steps']) for one in walks)} steps, {len(found)} walks differ")
        for differences in found:
            print(*differences, sep="\n")
    return 1 if differing else 0


def _coverage(options: argparse.Namespace) -> int:
    print("\n".join(coverage.lines([walk for path in options.files for walk in read(path)[1]])))
    return 0


def _show(options: argparse.Namespace) -> int:
    for walk in read(options.file)[1]:
        if walk["seed"] == options.seed:
            print({key: value for key, value in walk.items() if key != "steps"})
            for step in walk["steps"]:
                print(step["t"], step["client"], step["api"], f"v{step['version']}", json.dumps(step["request"]))
                for what in ("replies", "records"):
                    for one in step[what]:
                        print(f"    {what} {json.dumps(one)}")
                print("    state", json.dumps(step["state"]))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.harness.oracle.consumer",
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
        made.add_argument("--kinds", type=_kinds_of, default=tuple(WALKS), help=f"of walks: {', '.join(WALKS)}")
        made.add_argument("--out", type=Path, default=OUT, help=f"directory of the recordings ({OUT})")
    for name, function in (("check", _check), ("core", _core), ("coverage", _coverage)):
        command(name, function).add_argument("files", type=Path, nargs="+")
    made = command("show", _show)
    made.add_argument("file", type=Path)
    made.add_argument("seed", type=int)
    options = parser.parse_args()
    return int(options.function(options))


if __name__ == "__main__":
    sys.exit(main())
