"""Golden scenarios: the core does what each file says, and together they cover every request in every state."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

import pytest

from broker.cores.transactions.states import STORED
from tests.broker.cores.transactions.traces import ABSENT, TRACES, perform

FILES = sorted(TRACES.glob("*.txt"))

ENDS = [f"EndTxn v{version} {result}" for version in (4, 5) for result in ("commit", "abort")]
REQUESTS = [
    "InitProducerId",
    "InitProducerId with the last epoch",
    "InitProducerId of another producer",
    *(
        f"{request}{producer}"
        for request in ("AddPartitionsToTxn", "AddOffsetsToTxn", "verify", "add", *ENDS)
        for producer in ("", " with the last epoch", " of another producer")
    ),
    *(f"{request} with the next epoch" for request in ENDS),
    "DescribeTransactions",
    "ListTransactions",
]

performed = cache(perform)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario_matches_its_trace(path: Path) -> None:
    written = path.read_text()
    assert performed(written)[0] == written, "python -m tests.broker.cores.transactions.traces --write updates it"


def test_traces_cover_every_request_in_every_state() -> None:
    covered = {pair for path in FILES for pair in performed(path.read_text())[1]}
    wanted = {*product((state.kafka_name for state in STORED.values()), REQUESTS)}
    # A transactional id that does not exist has no producer id or epoch to compare with.
    wanted |= {(ABSENT, request) for request in ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", *ENDS)}
    wanted |= {(ABSENT, request) for request in ("verify", "add", "DescribeTransactions", "ListTransactions")}
    assert len(wanted) == 209
    assert not wanted - covered


def test_every_trace_starts_with_a_description() -> None:
    assert len(FILES) >= 30
    for path in FILES:
        first = path.read_text().splitlines()[0]
        assert first.startswith("# "), path.name
        assert len(first) > 30, path.name
