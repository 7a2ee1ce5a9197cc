"""`python -m bench`: rounds of all targets in turn, so that a busy neighbour is everybody's neighbour."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import statistics
import sys
import tempfile
import time

from bench.measures import MEASURES, Measure
from bench.report import Report
from bench.streams import StreamFailed
from bench.targets import Running, Target, TargetFailed, ours, peer
from bench.wire import Refused

EPILOG = """\
A peer is a command that runs a broker in the foreground and prints "READY HOST:PORT PID" when it serves. NAME may be
followed by what its acknowledgements survive; {dir} stands for a fresh directory. For example:
  python -m bench --peer "kafka: page cache=python -m tests.harness.reference_kafka start -o group.initial.rebalance.delay.ms=0"
It talks only to what it started. "x NAME" is how many times better the first column is.
"""


def main() -> int:
    options = _parse()
    targets = [ours(durability) for durability in options.durability]
    targets += [peer(option) for option in options.peer]
    _allow_many_connections()
    report = Report(targets)
    _say(_about_the_machine())
    for number in range(options.rounds):
        for target in targets:
            began = time.monotonic()
            said = _measure(target, options.only, report)
            _say(f"round {number + 1} {target.name}: {time.monotonic() - began:.0f} s{said}")
    sys.stdout.write(report.text() + "\n")
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"version": 1, "kind": "bench", "rows": report.rows()}, out, indent=1)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure this broker, beside any peers.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [measure.only for measure in MEASURES]
    parser.add_argument("--rounds", type=int, default=3, choices=range(1, 21), metavar="N", help="1 to 20 (default: 3)")
    parser.add_argument("--only", action="append", choices=names, help="leave out all others; may be repeated")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND", help="may be repeated")
    parser.add_argument(
        "--durability", action="append", choices=("power", "process"), help="of this broker (default: both in turn)"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the figures of every round there")
    options = parser.parse_args()
    options.only = options.only or names
    options.durability = options.durability or ["power", "process"]
    return options


def _measure(target: Target, only: list[str], report: Report) -> str:
    """One round of one target; a measure that fails costs its own figures alone."""
    wanted = [measure for measure in MEASURES if measure.only in only]
    said = ""
    for measures in [[m for m in wanted if not m.alone], *([m] for m in wanted if m.alone)]:
        if measures:
            try:
                with Running(target) as running:
                    said += _take(running, measures, report)
            except TargetFailed as error:
                said += f"; {error}"
    return said


def _take(running: Running, measures: list[Measure], report: Report) -> str:
    said = ""
    for measure in measures:
        try:
            for figure in measure.take(running):
                report.add(running.target, figure)
        except (Refused, StreamFailed, OSError) as error:
            said += f"; {measure.only}: {type(error).__name__}: {error}"
    return said


def _allow_many_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _about_the_machine() -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{os.cpu_count()} cores, load {load}, 4 KiB append and sync {_sync_ms():.2f} ms (median)"


def _sync_ms() -> float:
    """The floor of every durable answer here."""
    times = []
    with tempfile.TemporaryFile() as probe:
        for _ in range(100):
            began = time.perf_counter()
            os.write(probe.fileno(), bytes(4096))
            getattr(os, "fdatasync", os.fsync)(probe.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
