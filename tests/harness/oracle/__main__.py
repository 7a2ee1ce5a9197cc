"""`python -m tests.harness.oracle`: record what a real Kafka answers to group requests, and compare it with our answers.

fresh [--seeds A-B]                               start a Kafka, record walks of fresh seeds, compare: make oracle
record --seeds A-B --bootstrap HOST:PORT --out FILE       record from a running Kafka
check FILE ...                                    compare recordings on the core and over a socket
coverage FILE ...                                 print which answers recordings contain
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.harness.oracle import coverage, fresh, replay
from tests.harness.oracle.over_socket import address_of
from tests.harness.oracle.record import record, write
from tests.harness.oracle.verdict import seeds_of, summed_up
from tests.harness.reference_kafka import Jars, Unavailable

WALKS = 200
MAX_SIZE_SHARE = 5  # every fifth seed is also walked with a group.max.size of 2
OUT = Path("build") / "oracle"


def _fresh(options: argparse.Namespace) -> int:
    first = int(time.time())
    seeds = options.seeds or range(first, first + WALKS)
    try:
        Jars()
    except Unavailable as reason:
        print(f"oracle: skipped, no real Kafka on this machine: {reason}")
        return 0
    name = f"{seeds[0]}-{seeds[-1]}"
    print(f"seeds {name} (to repeat: python -m tests.harness.oracle fresh --seeds {name})", flush=True)
    verdicts = []
    for variant, chosen in (("classic", seeds), ("max-size", seeds[::MAX_SIZE_SHARE])):
        verdicts.append(fresh.record_fresh(chosen, variant, options.out / f"{variant}-{name}.jsonl.gz"))
        print("\n".join(verdicts[-1].lines()), flush=True)
    return summed_up(verdicts)


def _check(options: argparse.Namespace) -> int:
    verdicts = []
    for path in options.files:
        verdicts.append(fresh.check(path))
        print("\n".join(verdicts[-1].lines()), flush=True)
    return summed_up(verdicts)


def _record(options: argparse.Namespace) -> int:
    made = record(address_of(options.bootstrap), options.seeds)
    write(options.out, made.walks, fresh.SETTINGS[options.variant], options.recorded_from)
    steps = sum(len(walk["steps"]) for walk in made.walks)
    print(
        f"{options.out}: {len(made.walks)} walks, {steps} steps; dropped {dict(made.dropped)}, given up {made.given_up}"
    )
    return 0


def _coverage(options: argparse.Namespace) -> int:
    walks = [walk for path in options.files for walk in replay.read(str(path.resolve()))[1]]
    print("\n".join(coverage.lines(walks)))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.harness.oracle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)

    def command(name: str, function: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        made = commands.add_parser(name)
        made.set_defaults(function=function)
        return made

    made = command("fresh", _fresh)
    made.add_argument("--seeds", type=seeds_of, help=f"FIRST-LAST; default: {WALKS} seeds from the clock")
    made.add_argument("--out", type=Path, default=OUT, help=f"directory of the recordings ({OUT})")
    made = command("record", _record)
    made.add_argument("--seeds", type=seeds_of, required=True)
    made.add_argument("--bootstrap", required=True)
    made.add_argument("--out", type=Path, required=True)
    made.add_argument("--variant", choices=fresh.SETTINGS, default="classic", help="the settings of the broker")
    made.add_argument("--recorded-from", default="Apache Kafka")
    for name, function in (("check", _check), ("coverage", _coverage)):
        command(name, function).add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    return int(options.function(options))


if __name__ == "__main__":
    sys.exit(main())
