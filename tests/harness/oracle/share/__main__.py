"""`python -m tests.harness.oracle.share`: walks of share groups, recorded from a real Kafka 4.1 and compared with our coordinator.

record ADDRESS FILE [--first SEED] [--walks N] [--steps N]    record from a Kafka, which must have share groups or be able to
scenarios FILE                                                record timed scenarios from a Kafka that is started for this
check FILE ...                                                compare recordings on the core
show FILE SEED                                                print a walk
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.harness.oracle.over_socket import address_of
from tests.harness.oracle.share import scenarios
from tests.harness.oracle.share.files import read, write
from tests.harness.oracle.share.on_core import describe, play_walk
from tests.harness.oracle.share.record import record
from tests.harness.oracle.share.scenarios import SETTINGS
from tests.harness.reference_kafka import ReferenceKafka


def _record(options: argparse.Namespace) -> int:
    host, _, port = options.address.rpartition(":")
    write(options.file, record((host, int(port)), options.first, options.walks, options.steps))
    return 0


def _scenarios(options: argparse.Namespace) -> int:
    with ReferenceKafka(SETTINGS) as kafka:
        write(options.file, scenarios.record(address_of(kafka.bootstrap_servers)))
    return 0


def _check(options: argparse.Namespace) -> int:
    differing = 0
    for path in options.files:
        walks = read(path)
        found = [differences for walk in walks if (differences := play_walk(walk))]
        differing += len(found)
        print(
            f"{path}: {len(walks)} walks, {sum(len(walk['steps']) for walk in walks)} steps, {len(found)} walks differ"
        )
        for differences in found:
            print(*differences, sep="\n")
    return 1 if differing else 0


def _show(options: argparse.Namespace) -> int:
    for walk in read(options.file):
        if walk["seed"] == options.seed:
            for place, step in enumerate(walk["steps"]):
                print(
                    place, describe(step), "\n    answer", step["answer"], *(f"\n    {one}" for one in step["records"])
                )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.harness.oracle.share",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    made = commands.add_parser("record")
    made.set_defaults(function=_record)
    made.add_argument("address")
    made.add_argument("file", type=Path)
    made.add_argument("--first", type=int, default=1)
    made.add_argument("--walks", type=int, default=20)
    made.add_argument("--steps", type=int, default=40)
    made = commands.add_parser("scenarios")
    made.set_defaults(function=_scenarios)
    made.add_argument("file", type=Path)
    made = commands.add_parser("check")
    made.set_defaults(function=_check)
    made.add_argument("files", type=Path, nargs="+")
    made = commands.add_parser("show")
    made.set_defaults(function=_show)
    made.add_argument("file", type=Path)
    made.add_argument("seed", type=int)
    options = parser.parse_args()
    return int(options.function(options))


if __name__ == "__main__":
    sys.exit(main())
