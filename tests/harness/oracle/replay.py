"""Plays recordings of a real Kafka on the coordinator and reports every difference.

A walk is a list of steps (request, the answers that came before the next one, the groups as DescribeGroups v5 shows them); a
timed scenario is a list of requests and a list of answers, each with its time. Member ids in the recordings are symbols
($M1, $M2, ...). They become real ids through the source of randomness: where the recording gives out an id, the core gets
a UUID that spells its symbol.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.cores.core import Effects, RequestContext
from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.counted_topics import CountedTopics
from broker.cores.groups.settings import GroupSettings
from broker.protocol.api_keys import APIS
from broker.protocol.codec import decode, encode
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.wire_types import ARRAY, BYTES, Message, Struct, StructMeta
from tests.harness.group_core import handle

RECORDINGS = Path(__file__).parent / "recordings"
WALL_MS = 1_700_000_000_000
CONTROL, FIRST_FREE = 0, 1_000_000

# The order of these lists is arbitrary; they are sorted by these fields.
SORTED_BY = {
    "members": ("member_id", "group_instance_id"),
    "topics": ("name",),
    "partitions": ("partition_index",),
    "results": ("group_id",),
    "coordinators": ("key",),
    "groups": ("group_id",),
}
NOT_RECORDED = {"throttle_time_ms", "client_host"}
PLACE_OF = {"node_id": "NODE", "host": "HOST", "port": "PORT"}
NO_OPERATIONS = -(2**31)
# Kafka's explanation of INVALID_REQUEST; ours has other words.
FREE_TEXT = "This most likely occurs"


def read(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header and the walks, or scenarios, of a recording."""
    stored = (RECORDINGS / name).read_bytes()
    text = gzip.decompress(stored) if name.endswith(".gz") else stored
    header, *rest = map(json.loads, text.decode().rstrip("\n").split("\n"))
    return header, rest


def settings_of(header: dict[str, Any]) -> GroupSettings:
    return GroupSettings(**{name.replace(".", "_"): int(value) for name, value in header["settings"].items()})


@dataclass(frozen=True)
class Difference:
    """One result that differs from the recording."""

    where: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.where}\n    expected {_short(self.expected)}\n    got      {_short(self.got)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 1500 else text[:1500] + "..."


@dataclass
class Catalog(CountedTopics):
    """The topics of a recording."""

    topics: dict[str, int]

    def counts(self) -> Mapping[str, int]:
        return self.topics


@dataclass
class Player:
    """One coordinator and the clients of a walk: sends recorded steps, returns answers in the recorded form."""

    settings: GroupSettings
    topics: dict[str, int]
    forms: dict[str, str]  # symbol -> the form of the id, with * for its UUID
    now_ms: int = 1_000
    asked: dict[int, dict[str, Any]] = field(default_factory=dict)  # step number -> step
    next_symbol: str = ""  # the symbol of the next id

    def __post_init__(self) -> None:
        self.live = {symbol: form.replace("*", _uuid(symbol)) for symbol, form in self.forms.items()}
        self.symbols = {live: symbol for symbol, live in self.live.items()}
        self.coordinator = Coordinator(self.settings, self._new_id, Catalog(self.topics))
        self.api_names = {api.name: api for api in APIS.values()}
        self.coordinator.resume(self.now_ms, self._wall_ms())

    def send(self, step: dict[str, Any], gives_out: str) -> list[tuple[int, Any]]:
        """The answers that come with this step, at the same instant: (number of the step answered, response)."""
        self.asked[step["t"]] = step
        self.next_symbol = gives_out
        effects = self._handle(step["t"], step["client"], step["api"], step["version"], step["request"])
        return self._answers(effects) + self.let_time_pass(self.now_ms)

    def let_time_pass(self, until_ms: int) -> list[tuple[int, Any]]:
        """The answers until then; `now_ms` advances from deadline to deadline."""
        out: list[tuple[int, Any]] = []
        while (wake_at := self.coordinator.wake_at()) is not None and wake_at <= until_ms:
            self.now_ms = max(self.now_ms, wake_at)
            answers = self._answers(self.coordinator.advance(self.now_ms, self._wall_ms()))
            if answers and self.now_ms < until_ms:
                return out + answers
            out += answers
        self.now_ms = until_ms
        return out

    def describe(self, groups: list[str]) -> Any:
        request = DescribeGroupsRequest(groups=groups)
        context = RequestContext(CONTROL, 5, "control", "/127.0.0.1", "User:ANONYMOUS", self._wall_ms())
        effects = handle(self.coordinator, request, context, self.now_ms)
        return self.recorded_form(effects.replies[0].response, 5)

    def recorded_form(self, message: Message, version: int) -> Any:
        # Through bytes and back, to prove that the response can be sent.
        return self._plain(decode(type(message), encode(message, version), version), version)

    def _handle(self, ticket: int, client: str, name: str, version: int, fields: Any) -> Effects:
        request = build(self.api_names[name].request, self._with_live_ids(fields))
        request = decode(type(request), encode(request, version), version)
        context = RequestContext(ticket, version, client, "/127.0.0.1", "User:ANONYMOUS", self._wall_ms())
        return handle(self.coordinator, request, context, self.now_ms)

    def _answers(self, effects: Effects) -> list[tuple[int, Any]]:
        out = []
        for reply in effects.replies:
            version = self.asked[reply.ticket]["version"]
            out.append((reply.ticket, self.recorded_form(reply.response, version)))
        return out

    def _wall_ms(self) -> int:
        return WALL_MS + self.now_ms

    def _new_id(self) -> str:
        symbol, self.next_symbol = self.next_symbol, ""
        return _uuid(symbol) if symbol else "not-expected"

    def _with_live_ids(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._with_live_ids(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._with_live_ids(item) for item in value]
        return self.live.get(value, value) if isinstance(value, str) else value

    def _plain(self, value: Any, version: int, name: str = "") -> Any:
        if isinstance(value, Struct):
            fields = {
                f.name: self._plain(getattr(value, f.name), version, f.name)
                for f in type(value).FIELDS
                if f.is_in(version) and f.name not in NOT_RECORDED
            }
            if "node_id" in fields:
                fields |= {key: place for key, place in PLACE_OF.items() if fields[key] not in (-1, "")}
            return fields
        if isinstance(value, list):
            return _in_order([self._plain(item, version) for item in value], SORTED_BY.get(name))
        if isinstance(value, bytes):
            return value.decode("latin-1")
        if name == "authorized_operations":
            return None if value == NO_OPERATIONS else [bit for bit in range(31) if value >> bit & 1]
        return self.symbols.get(value, value) if isinstance(value, str) else value


def _uuid(symbol: str) -> str:
    return f"00000000-0000-4000-8000-{int(symbol.removeprefix('$M')):012}"


def _in_order(items: list[Any], keys: tuple[str, ...] | None) -> list[Any]:
    if keys is None or not all(isinstance(item, dict) for item in items):
        return items
    return sorted(items, key=lambda item: [str(item.get(key)) for key in keys] + [json.dumps(item, sort_keys=True)])


def build(cls: StructMeta, fields: dict[str, Any]) -> Any:
    """The message with these fields. Recordings hold bytes as text, one character per byte."""
    types = {declared.name: declared.type for declared in cls.FIELDS}
    return cls(**{name: _built(types[name], value) for name, value in fields.items()})


def _built(wire_type: Any, value: Any) -> Any:
    if isinstance(wire_type, ARRAY) and isinstance(wire_type.element, StructMeta) and value is not None:
        return [build(wire_type.element, item) for item in value]
    return value.encode("latin-1") if wire_type is BYTES and value is not None else value


# ---- walks -------------------------------------------------------------------------------------------------------


def play_walk(walk: dict[str, Any], settings: GroupSettings, topics: dict[str, int]) -> list[Difference]:
    """Every difference between the walk and our coordinator."""
    forms = {symbol: form for step in walk["steps"] for symbol, form in step["new"].items()}
    player = Player(settings, topics, forms)
    out: list[Difference] = []
    for step in walk["steps"]:
        where = f"seed {walk['seed']} step {step['t']} {step['api']} v{step['version']}"
        answers = player.send(step, gives_out=next(iter(step["new"]), ""))
        out += _compare_answers(where, player, step["replies"], answers, walk["groups"])
        state = {group["group_id"]: _state(group) for group in player.describe(walk["groups"])["groups"]}
        if state != step["state"]:
            out.append(Difference(f"{where}: state after", step["state"], state))
    return out


def _compare_answers(
    where: str, player: Player, recorded: list[dict[str, Any]], answers: list[tuple[int, Any]], groups: list[str]
) -> Iterator[Difference]:
    want = {reply["to"]: reply["response"] for reply in recorded}
    if len({to for to, _ in answers}) != len(answers):
        yield Difference(f"{where}: a request answered twice", sorted(want), [to for to, _ in answers])
    got = {to: _of_walk(response, player.asked[to]["api"], groups) for to, response in answers}
    for to in sorted(want.keys() | got.keys()):
        if not _alike(want.get(to), got.get(to)):
            yield Difference(f"{where}: answer to {to}", want.get(to), got.get(to))


def _of_walk(response: Any, api: str, groups: list[str]) -> Any:
    # A recording of ListGroups has only the groups of the walk.
    if api == "ListGroups":
        return {**response, "groups": [group for group in response["groups"] if group["group_id"] in groups]}
    return response


def _alike(want: Any, got: Any) -> bool:
    if isinstance(want, dict) and isinstance(got, dict):
        return want.keys() == got.keys() and all(_alike(want[key], got[key]) for key in want)
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(map(_alike, want, got))
    if isinstance(want, str) and want.startswith(FREE_TEXT):
        return isinstance(got, str) and got != ""
    return bool(want == got)


def _state(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "state": group["group_state"],
        "type": group["protocol_type"],
        "protocol": group["protocol_data"],
        "members": [
            {
                "member": member["member_id"],
                "instance": member["group_instance_id"],
                "client": member["client_id"],
                "metadata": member["member_metadata"],
                "assignment": member["member_assignment"],
            }
            for member in group["members"]
        ],
    }


# ---- timed scenarios ---------------------------------------------------------------------------------------------


def play_scenario(
    scenario: dict[str, Any], header: dict[str, Any], tolerance: float | None = None
) -> tuple[list[Difference], float]:
    """Every difference, and the largest distance in time between an answer and its recording, in units."""
    unit_ms = header["unit_ms"]
    allowed = header["tolerance"] if tolerance is None else tolerance
    ids = _ids_given_out(scenario)
    forms = {symbol: f"{owner}-*" for symbol, owner in ids.values()}
    player = Player(settings_of(header), header["topics"], forms)
    start_ms = player.now_ms
    came: dict[int, tuple[float, Any]] = {}
    where = f"{scenario['scenario']}: {scenario['about']}"
    out: list[Difference] = []

    def note(answers: list[tuple[int, Any]]) -> None:
        for to, response in answers:
            if to in came:
                out.append(Difference(f"{where}: step {to} answered twice", came[to], response))
            came[to] = ((player.now_ms - start_ms) / unit_ms, response)

    def wait(until_ms: int) -> None:
        while player.now_ms < until_ms:
            note(player.let_time_pass(until_ms))

    for step in sorted(scenario["steps"], key=lambda step: (step["at"], step["t"])):
        wait(start_ms + round(step["at"] * unit_ms))
        note(player.send(step, ids.get(step["t"], ("", ""))[0]))
    wait(start_ms + round(scenario["length"] * unit_ms))
    worst = 0.0
    recorded = {reply["to"]: (reply["at"], reply["response"]) for reply in scenario["replies"]}
    for to in sorted(recorded.keys() | came.keys()):
        at, response = recorded.get(to, (-1.0, None))
        our_at, our_response = came.get(to, (-1.0, None))
        worst = max(worst, abs(at - our_at))
        if not _alike(response, our_response) or abs(at - our_at) > allowed:
            out.append(Difference(f"{where}: answer to {to}", [at, response], [our_at, our_response]))
    return out, worst


def _ids_given_out(scenario: dict[str, Any]) -> dict[int, tuple[str, str]]:
    """For each step that created a member id: its symbol, and the name that the id starts with."""
    answers = {reply["to"]: reply["response"] for reply in scenario["replies"]}
    out = {}
    for step in scenario["steps"]:
        symbol = answers.get(step["t"], {}).get("member_id", "")
        if step["api"] == "JoinGroup" and not step["request"]["member_id"] and symbol:
            out[step["t"]] = (symbol, step["request"]["group_instance_id"] or step["client"])
    return out


def main() -> None:
    """Play recordings named on the command line, or all walks, and print the differences of the first step of each walk."""
    names = sys.argv[1:] or ["classic-4.1.jsonl.gz", "max-size-4.1.jsonl.gz"]
    for name in names:
        header, walks = read(name)
        differing = 0
        for walk in walks:
            found = play_walk(walk, settings_of(header), header["topics"])
            differing += len({difference.where.split(":")[0] for difference in found})
            if found:
                print(found[0])
        print(f"{name}: {len(walks)} walks, {sum(len(walk['steps']) for walk in walks)} steps, {differing} differing")


if __name__ == "__main__":
    main()
