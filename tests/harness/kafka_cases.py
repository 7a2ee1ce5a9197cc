"""Reads the tables of Kafka's own tests: which tests of ours cover each name, or why it does not apply.

A table is a folder below `tests/` with the names in `kafka_test_names.txt` and what covers them in `kafka_cases.txt`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
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


class CollectedTests:
    """The ids of tests below `tests/`: those that this run has collected; for other files, those that pytest then collects."""

    def __init__(self, node_ids: Iterable[str]) -> None:
        self._ids = _below_tests(node_ids)

    def of_files(self, files: Collection[str]) -> set[str]:
        """The ids of all tests in these files. A parametrized test has one id without parameters, too."""
        known = {test_id.partition("::")[0] for test_id in self._ids}
        return self._ids | _collected(sorted(set(files) - known))


def _collected(files: Sequence[str]) -> set[str]:
    if not files:
        return set()
    paths = [f"tests/{file}" for file in files]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *paths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTEST_ADDOPTS": ""})
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr
    return _below_tests(line for line in done.stdout.splitlines() if "::" in line)


def _below_tests(node_ids: Iterable[str]) -> set[str]:
    ids = {node_id.removeprefix("tests/") for node_id in node_ids}
    return ids | {test_id.partition("[")[0] for test_id in ids}


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
