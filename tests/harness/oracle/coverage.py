"""Which answers a recording contains, by request, error code and the state of the group before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

STATES = ("Dead", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
NO_GROUP = "-"  # a group that does not belong to the walk
PARKED, NEVER = "parked", "never"
Walk = dict[str, Any]
Table = dict[tuple[str, str], Counter[str]]


def table(walks: list[Walk]) -> Table:
    """Answers by (request, error code) and state before. An answer with several codes counts once for each."""
    out: Table = defaultdict(Counter)
    for walk in walks:
        asked = {step["t"]: (step["api"], state) for step, state in _with_state_before(walk)}
        for step in walk["steps"]:
            for reply in step["replies"]:
                api, state = asked[reply["to"]]
                for code in {str(code) for code in _codes(reply["response"])} or {"none"}:
                    out[api, code][state] += 1
            if all(reply["to"] != step["t"] for reply in step["replies"]):
                api, state = asked[step["t"]]
                out[api, NEVER if step["t"] in walk["unanswered"] else PARKED][state] += 1
    return out


def lines(walks: list[Walk]) -> Iterator[str]:
    """The table as text, and the sizes of the stable groups."""
    columns = (*STATES, NO_GROUP)
    yield f"{'request':16} {'code':>6} " + " ".join(f"{name[:10]:>10}" for name in columns) + f" {'all':>8}"
    for (api, code), row in sorted(table(walks).items(), key=lambda one: (one[0][0], _rank(one[0][1]))):
        counts = " ".join(f"{row[name] or '':>10}" for name in columns)
        yield f"{api:16} {code:>6} {counts} {row.total():>8}"
    sizes = Counter(
        len(group["members"])
        for walk in walks
        for step in walk["steps"]
        for group in step["state"].values()
        if group["state"] == "Stable"
    )
    yield "members of Stable groups, in steps: " + ", ".join(
        f"{size}: {count}" for size, count in sorted(sizes.items())
    )


def _rank(code: str) -> tuple[bool, int, str]:
    number = code.removeprefix("-")
    return (not number.isdigit(), int(code) if number.isdigit() else 0, code)


def _codes(response: Any) -> set[int]:
    if isinstance(response, list):
        return {code for one in response for code in _codes(one)}
    if not isinstance(response, dict):
        return set()
    own = {response["error_code"]} if "error_code" in response else set()
    return own.union(*map(_codes, response.values()))


def _with_state_before(walk: Walk) -> Iterator[tuple[dict[str, Any], str]]:
    states = dict.fromkeys(walk["groups"], "Dead")
    for step in walk["steps"]:
        yield step, _state_of(step["request"], states)
        states = {name: group["state"] for name, group in step["state"].items()}


def _state_of(request: dict[str, Any], states: dict[str, str]) -> str:
    named = next((request[key] for key in ("groups", "groups_names", "coordinator_keys") if request.get(key)), None)
    if named is None:
        # ListGroups names no group; it counts under the state of the walk's first group.
        return states.get(request.get("group_id", request.get("key", "$G1")), NO_GROUP)
    return states.get(named[0]["group_id"] if isinstance(named[0], dict) else named[0], NO_GROUP)
