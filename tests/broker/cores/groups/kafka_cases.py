"""Reads the table of Kafka's own coordinator tests: which tests of ours cover each name, or why it does not apply."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
NAMES, CASES = HERE / "kafka_test_names.txt", HERE / "kafka_cases.txt"

TRACE = "broker/cores/groups/test_traces.py::test_scenario_matches_its_trace[{}]"
TIMED = "broker/cores/groups/test_oracle.py::test_every_timed_scenario_has_kafkas_answers_at_kafkas_times[{}]"


@dataclass
class Table:
    """For each (test class, name): ids of tests below `tests/`, or the key of a reason."""

    covered: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    not_applicable: dict[tuple[str, str], str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    repeated: list[tuple[str, str]] = field(default_factory=list)


def names() -> list[tuple[str, str]]:
    """(test class, name) of all of Kafka's tests."""
    return list(_lines(NAMES))


def table() -> Table:
    out = Table()
    for test_class, line in _lines(CASES):
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
                out.covered[case] = [_test_id(place) for place in places.split(", ")]
    return out


def _lines(path: Path) -> list[tuple[str, str]]:
    """The lines with content, each with the test class of its section."""
    out, test_class = [], ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            test_class = line.strip("[]")
        elif line and not line.startswith("#"):
            out.append((test_class, line))
    return out


def _test_id(place: str) -> str:
    kind, _, name = place.partition(" ")
    if kind == "trace":
        return TRACE.format(name)
    return TIMED.format(name) if kind == "timed" else place
