"""Reads the tables of Kafka's own tests: which tests of ours cover each name, or why it does not apply.

A table is a folder below `tests/` with the names in `kafka_test_names.txt` and what covers them in `kafka_cases.txt`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness import ROOT

TESTS = ROOT / "tests"
TRACE = "{}/test_traces.py::test_scenario_matches_its_trace[{}]"
TIMED = "{}/test_oracle.py::test_every_timed_scenario_has_kafkas_answers_at_kafkas_times[{}]"


@dataclass
class Table:
    """For each (test class, name): ids of tests below `tests/`, or the key of a reason."""

    covered: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    not_applicable: dict[tuple[str, str], str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    repeated: list[tuple[str, str]] = field(default_factory=list)


def names(folder: str) -> list[tuple[str, str]]:
    """(test class, name) of all of Kafka's tests."""
    return list(_lines(TESTS / folder / "kafka_test_names.txt"))


def table(folder: str) -> Table:
    out = Table()
    for test_class, line in _lines(TESTS / folder / "kafka_cases.txt"):
        if line.startswith("not "):
            key, _, reason = line.removeprefix("not ").partition(" = ")
            out.reasons[key] = reason
            continue
        listed, _, places = line.partition(": ")
        for name in listed.split():
            case = (test_class, name)
            if case in out.covered or case in out.not_applicable:
                out.repeated.append(case)
            if places.startswith("not "):
                out.not_applicable[case] = places.removeprefix("not ")
            else:
                out.covered[case] = [_test_id(folder, place) for place in places.split(", ")]
    return out


def missing(covered: dict[tuple[str, str], list[str]]) -> dict[str, tuple[str, str]]:
    """The ids of tests that do not exist, each with a name that it should cover. A parametrized test may be named without parameters."""
    named = {test_id: case for case, test_ids in covered.items() for test_id in test_ids}
    files = sorted({"tests/" + test_id.partition("::")[0] for test_id in named})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTEST_ADDOPTS": ""})
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr
    ids = {line.removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line}
    ids |= {test_id.partition("[")[0] for test_id in ids}
    return {test_id: case for test_id, case in named.items() if test_id not in ids}


def _lines(path: Path) -> list[tuple[str, str]]:
    """The lines with content, each with the test class of its section."""
    out, test_class = [], ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            test_class = line.strip("[]")
        elif line and not line.startswith("#"):
            out.append((test_class, line))
    return out


def _test_id(folder: str, place: str) -> str:
    kind, _, name = place.partition(" ")
    if kind == "trace":
        return TRACE.format(folder, name)
    return TIMED.format(folder, name) if kind == "timed" else place
