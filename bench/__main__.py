"""`python -m bench`: measure all targets in turn in each round, so that load on the machine affects all of them."""

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
A peer is a command that runs a broker in the foreground and prints "READY HOST:PORT PID" when it serves; a fourth word is the
client.properties of a SASL_SSL listener. NAME may be followed by what its acknowledgements survive; {dir} stands for a fresh
directory. For example:
  python -m bench --peer "kafka: page cache=python -m tests.harness.reference_kafka start -o group.initial.rebalance.delay.ms=0"
  python -m bench --only secured --peer "kafka: page cache=python -m tests.harness.secured_kafka start --ready"
The bench connects only to brokers that it started. "x NAME" is the factor by which the first column is better.
"""


def main() -> int:
    options = _parse()
    targets = [ours(durability) for durability in options.durability]
    targets += [peer(option) for option in options.peer]
    _allow_many_connections()
    report = Report(targets)
    _print(_about_the_machine())
    for number in range(options.rounds):
        for target in targets:
            began = time.monotonic()
            failures = _measure(target, options.only, report)
            _print(f"round {number + 1} {target.name}: {time.monotonic() - began:.0f} s{failures}")
    sys.stdout.write(report.text() + "\n")
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"version": 1, "kind": "bench", "rows": report.rows()}, out, indent=1)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure this broker and compare it with peers.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [measure.only for measure in MEASURES]
    parser.add_argument("--rounds", type=int, default=3, choices=range(1, 21), metavar="N", help="1 to 20 (default: 3)")
    parser.add_argument("--only", action="append", choices=names, help="run only this measure; repeatable")
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME=COMMAND", help="a broker to compare with; repeatable"
    )
    parser.add_argument(
        "--durability",
        action="append",
        choices=("power", "process"),
        help="durability of this broker (default: both in turn)",
    )
    parser.add_argument("--json", metavar="FILE", help="also write the figures of every round to this file")
    options = parser.parse_args()
    options.only = options.only or names
    options.durability = options.durability or ["power", "process"]
    return options


def _measure(target: Target, only: list[str], report: Report) -> str:
    """One round of one target. A measure that fails loses only its own figures. Returns the failures as text."""
    wanted = [measure for measure in MEASURES if measure.only in only]
    failures = ""
    for measures in [[m for m in wanted if not m.alone], *([m] for m in wanted if m.alone)]:
        if measures:
            try:
                with Running(target, secured=measures[0].secured) as running:
                    failures += _take(running, measures, report)
            except TargetFailed as error:
                failures += f"; {error}"
    return failures


def _take(running: Running, measures: list[Measure], report: Report) -> str:
    failures = ""
    for measure in measures:
        try:
            for figure in measure.take(running):
                report.add(running.target, figure)
        except (Refused, StreamFailed, OSError) as error:
            failures += f"; {measure.only}: {type(error).__name__}: {error}"
    return failures


def _allow_many_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _about_the_machine() -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{os.cpu_count()} cores, load {load}, 4 KiB append and sync {_sync_ms():.2f} ms (median)"


def _sync_ms() -> float:
    """The time of an append with sync: the lower bound of every durable response on this machine."""
    times = []
    with tempfile.TemporaryFile() as probe:
        for _ in range(100):
            began = time.perf_counter()
            os.write(probe.fileno(), bytes(4096))
            getattr(os, "fdatasync", os.fsync)(probe.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def _print(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
