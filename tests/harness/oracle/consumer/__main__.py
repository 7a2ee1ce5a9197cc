"""`python -m tests.harness.oracle.consumer`: compare recorded walks of consumer groups with our coordinator.

check FILE ...       compare recordings on the core
show FILE SEED       print a walk
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from tests.harness.oracle.consumer import on_core
from tests.harness.oracle.consumer.files import read


def _check(options: argparse.Namespace) -> int:
    differing = 0
    for path in options.files:
        header, walks = read(path)
        settings = on_core.settings_of(header)
        found = [differences for walk in walks if (differences := on_core.play_walk(walk, settings))]
        differing += len(found)
        steps = sum(len(walk["steps"]) for walk in walks)
        print(f"{path}: {len(walks)} walks, {steps} steps, {len(found)} walks differ")
        for differences in found:
            print(*differences, sep="\n")
    return 1 if differing else 0


def _show(options: argparse.Namespace) -> int:
    for walk in read(options.file)[1]:
        if walk["seed"] == options.seed:
            print({key: value for key, value in walk.items() if key != "steps"})
            for step in walk["steps"]:
                print(step["t"], step["client"], step["api"], f"v{step['version']}", json.dumps(step["request"]))
                for what in ("replies", "records"):
                    print(*(f"    {what} {json.dumps(one)}" for one in step[what]), sep="\n")
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

    command("check", _check).add_argument("files", type=Path, nargs="+")
    made = command("show", _show)
    made.add_argument("file", type=Path)
    made.add_argument("seed", type=int)
    options = parser.parse_args()
    return int(options.function(options))


if __name__ == "__main__":
    sys.exit(main())
