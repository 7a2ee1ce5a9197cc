"""Which answers a recording contains, by request, error code and the state of the group before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.harness.oracle.consumer.files import Recorded, State, full_states
from tests.harness.oracle.consumer.forms import codes

CONSUMER = ("Empty", "Assigning", "Reconciling", "Stable")
CLASSIC = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
STATES = ("Dead", *(f"consumer {one}" for one in CONSUMER), *(f"classic {one}" for one in CLASSIC))
NO_GROUP = "-"  # a group that does not belong to the walk, or none
MIXED = "mixed"  # a consumer group with members of both protocols
Table = dict[tuple[str, str], Counter[str]]


def table(walks: list[Recorded]) -> Table:
    """Answers by (request, error code) and state before. An answer with several codes counts once for each."""
    out: Table = defaultdict(Counter)
    for walk in walks:
        asked: dict[int, tuple[str, str]] = {}
        for step, before, _ in full_states(walk):
            asked[step["t"]] = step["api"], _state_of(step["request"], before)
            for reply in step["replies"]:
                api, state = asked[reply["to"]]
                for code in {str(one) for one in codes(reply["response"])} or {"none"}:
                    out[api, code][state] += 1
    return out


def member_states(walks: list[Recorded]) -> Counter[int]:
    """How often each state of a member was stored."""
    records = (one for walk in walks for step in walk["steps"] for one in step["records"])
    return Counter(one[3]["state"] for one in records if one[0] == 8 and one[3] is not None)


def lines(walks: list[Recorded]) -> Iterator[str]:
    """The table as text, and the states of members."""
    columns = (*STATES, MIXED, NO_GROUP)
    yield f"{'request':22} {'code':>5} " + " ".join(f"{_short(name):>9}" for name in columns) + f" {'all':>7}"
    for (api, code), row in sorted(table(walks).items(), key=lambda one: (one[0][0], _rank(one[0][1]))):
        counts = " ".join(f"{row[name] or '':>9}" for name in columns)
        yield f"{api:22} {code:>5} {counts} {row.total():>7}"
    yield "states of members: " + ", ".join(
        f"{state}: {count}" for state, count in sorted(member_states(walks).items())
    )


def _short(name: str) -> str:
    kind, _, state = name.rpartition(" ")
    return f"{kind[:2]} {state[:6]}".strip()


def _rank(code: str) -> tuple[bool, int]:
    return not code.isdigit(), int(code) if code.isdigit() else 0


def _state_of(request: dict[str, Any], before: State) -> str:
    found = before.get(request.get("group_id", ""))
    if found is None:
        return NO_GROUP
    if found["type"] == "consumer" and any(one["type"] == 0 for one in found["members"].values()):
        return MIXED
    return f"{found['type']} {found['state']}".strip()
