"""Which answers a recording contains, by request, error code and the state of the transaction before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.harness.oracle.transactions.forms import codes
from tests.harness.oracle.transactions.player import CLOSED, State, Step
from tests.harness.oracle.transactions.record import Recorded, full_states

# No state is seen while a transaction is being completed: the recorder waits.
STATES = ("unknown", "Empty", "Ongoing", "CompleteCommit", "CompleteAbort")
NO_ID = "-"  # the request names no transactional id of the walk
Table = dict[tuple[str, str], Counter[str]]


def table(walks: list[Recorded]) -> Table:
    """Answers by (request, error code) and state before. An answer with several codes counts once for each."""
    out: Table = defaultdict(Counter)
    for walk in walks:
        for step, before, _ in full_states(walk):
            found = codes(step["response"])
            names = {str(code) for code in found} or {CLOSED if step["response"] == CLOSED else "none"}
            for name in names:
                out[step["api"], name][_state_of(step, before)] += 1
    return out


def lines(walks: list[Recorded]) -> Iterator[str]:
    """The table as text."""
    columns = (*STATES, NO_ID)
    yield f"{'request':20} {'code':>6} " + " ".join(f"{name:>14}" for name in columns) + f" {'all':>8}"
    for (api, code), row in sorted(table(walks).items(), key=lambda one: (one[0][0], _rank(one[0][1]))):
        counts = " ".join(f"{row[name] or '':>14}" for name in columns)
        yield f"{api:20} {code:>6} {counts} {row.total():>8}"


def _rank(code: str) -> tuple[bool, int, str]:
    return (not code.isdigit(), int(code) if code.isdigit() else 0, code)


def _state_of(step: Step, before: State) -> str:
    request = step["request"]
    named = request.get("transactional_id") or request.get("v3_and_below_transactional_id")
    if not named and request.get("transactions"):
        named = request["transactions"][0]["transactional_id"]
    found = before.get(named or "")
    if found is None:
        return NO_ID
    return str(found[0]) if isinstance(found, list) else "unknown"
