"""Golden scenarios: what the core makes of each is what its file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.coordinator.traces import TRACES, play

FILES = sorted(TRACES.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario_goes_as_its_trace_says(path: Path) -> None:
    written = path.read_text()
    assert play(written) == written, "python -m tests.coordinator.traces --write updates it"


def test_traces_are_there_and_each_says_what_it_shows() -> None:
    assert len(FILES) >= 15
    assert all(path.read_text().startswith("# ") for path in FILES)
