"""Golden scenarios: the core does what each file says, and together they cover every request in every state."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.events import Cause
from tests.broker.cores.groups.traces import TRACES, perform

# A line of a history.
HISTORY_LINE = re.compile(r"    [0-9.]+ [a-z_]+, generation ")
FILES = sorted(TRACES.glob("*.txt"))

# An id is known if the broker has given it out.
REQUESTS = [
    "JoinGroup without id",
    "JoinGroup known",
    "JoinGroup unknown",
    "SyncGroup known",
    "SyncGroup unknown",
    "Heartbeat known",
    "Heartbeat unknown",
    "LeaveGroup known",
    "LeaveGroup unknown",
    "OffsetCommit without id",
    "OffsetCommit known",
    "OffsetCommit unknown",
    "TxnOffsetCommit without id",
    "TxnOffsetCommit known",
    "TxnOffsetCommit unknown",
    "OffsetFetch",
    "OffsetDelete",
    "DescribeGroups",
    "ListGroups",
    "DeleteGroups",
]

performed = cache(perform)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario_matches_its_trace(path: Path) -> None:
    written = path.read_text()
    assert performed(written)[0] == written, "python -m tests.broker.cores.groups.traces --write updates it"


def test_traces_cover_every_request_in_every_state() -> None:
    covered = {pair for path in FILES for pair in performed(path.read_text())[1]}
    wanted = set(product((state.value for state in GroupState), REQUESTS))
    assert len(wanted) == 100
    assert not wanted - covered


# In classic groups, a member rejoins because of changed topics.
@pytest.mark.parametrize(
    "cause", [one for one in Cause if one is not Cause.TOPICS_CHANGED], ids=lambda cause: cause.value
)
def test_traces_cover_every_cause(cause: Cause) -> None:
    shown = f": {cause.value} "
    lines = [line for path in FILES for line in path.read_text().splitlines() if HISTORY_LINE.match(line)]
    assert any(shown in line for line in lines)


def test_every_trace_starts_with_a_description() -> None:
    assert len(FILES) >= 100
    for path in FILES:
        first = path.read_text().splitlines()[0]
        assert first.startswith("# "), path.name
        assert len(first) > 30, path.name
