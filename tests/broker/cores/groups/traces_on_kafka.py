"""Plays golden scenarios on a running Kafka, in real time and in parallel, and prints the answers that differ from ours.

    python -m tests.broker.cores.groups.traces_on_kafka [--longest SECONDS] [NAME ...]

A Kafka is started for each set of settings that the scenarios use, by default with an initial delay of half a second; this
needs java and mvn. What Kafka does not have (restarts on demand, our own requests) is left out, and so are times: an answer
belongs to the step after which it arrives. Exits 1 if a scenario differs that is not listed in KNOWN.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import select
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from broker.cores.core import Effects
from broker.protocol.codec import decode, encode
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.join_group import JoinGroupResponse
from broker.protocol.wire_types import Message, Struct
from tests.broker.cores.groups.trace_requests import REQUESTS, Values, millis
from tests.broker.cores.groups.traces import TRACES, Run, act, read, settings_of
from tests.broker.cores.groups.transactions_on_kafka import Producers
from tests.harness.reference_kafka import ReferenceKafka, Unavailable
from tests.harness.wire_client import ConnectionClosed, WireClient

MEMBER_ID = re.compile(r"\b\w+-[A-Z]\b")
ANSWER_S, SURPLUS_S, LATE_S, EARLY_S = 1.3, 0.04, 0.6, 0.4
AT_ONCE, TRIES = 30, 3
# Requests on two connections may overtake each other.
ONE_AFTER_ANOTHER_S = 0.03
# Scenarios with different answers, by our decision or because Kafka chooses freely.
KNOWN = {
    "delete_offsets": "unreadable metadata blocks a group of Kafka's",
    "recovery_of_unreadable_subscriptions": "unreadable metadata blocks a group of Kafka's",
    "initial_delay_after_a_capped_one": "Kafka remembers a new member of an earlier delay",
    "empty_groups_without_offsets": "Kafka deletes a group that has just given out an id",
    "leader_reelection": "Kafka may choose any new leader",
    "protocol_tie": "Kafka may choose any protocol in a tie",
    "static_restart_in_session": "its two times are closer than this clock can resolve",
}
INITIAL_DELAY = "group.initial.rebalance.delay.ms"
WITHOUT_TIME = ("settings", "topics", "history")
NOT_COMPARED = {"throttle_time_ms", "host", "port", "node_id", "error_message"}


@dataclass
class Ours(Run):
    """Our coordinator; it keeps its answers as messages."""

    answers: dict[int, Message] = field(default_factory=dict)

    def _effects(self, effects: Effects) -> list[str]:
        for reply in effects.replies:
            version = self.tickets[reply.ticket]
            self.answers[reply.ticket] = decode(type(reply.response), encode(reply.response, version), version)
        return super()._effects(effects)


@dataclass
class Theirs:
    """The same clients on a Kafka, with a connection per request."""

    address: tuple[str, int]
    name: str
    waiting: dict[int, WireClient] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)
    answers: dict[int, Message] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)  # our member id -> theirs
    producers: Producers = field(init=False)

    def __post_init__(self) -> None:
        self.producers = Producers(self.address, self.name)

    def group(self, group_id: str) -> str:
        return f"{self.name}.{group_id}" if group_id else ""

    def send(self, ticket: int, words: list[str], values: Values) -> None:
        group_id = values.get("group", "g")
        theirs = {
            key: MEMBER_ID.sub(lambda found: self.learn_id(found[0], group_id), text) for key, text in values.items()
        }
        theirs["group"] = self.group(group_id)
        if "groups" in values:
            theirs["groups"] = ",".join(map(self.group, values["groups"].split(",")))
        client, api, version = words[1], words[2], int(words[3].removeprefix("v"))
        if api == "TxnOffsetCommit":
            theirs = self.producers.begin(theirs, version)
        connection = WireClient(self.address, client_id=client, timeout_s=5)
        connection.send(REQUESTS[api](theirs, version), version)
        self.waiting[ticket], self.versions[ticket] = connection, version

    def listen(self, until: float, wanted: set[int]) -> None:
        """Read answers until this time, or until all that are wanted have arrived."""
        while wanted - self.answers.keys() or not wanted:
            left_s = until - time.monotonic()
            if left_s <= 0:
                return
            sockets = {client.socket: ticket for ticket, client in self.waiting.items()}
            if not sockets:
                time.sleep(left_s)
                return
            for ready in select.select(list(sockets), [], [], left_s)[0]:
                ticket = sockets[ready]
                # A missing answer is a difference, too.
                with self.waiting.pop(ticket) as client, contextlib.suppress(ConnectionClosed):
                    self.answers[ticket] = client.receive()

    def describe(self, group_ids: list[str]) -> Any:
        with WireClient(self.address) as client:
            return client.ask(DescribeGroupsRequest(groups=[self.group(group_id) for group_id in group_ids]), 5)

    def learn(self, ours: Message, theirs: Message) -> None:
        if isinstance(ours, JoinGroupResponse) and isinstance(theirs, JoinGroupResponse) and theirs.member_id:
            self.ids.setdefault(ours.member_id, theirs.member_id)

    def learn_id(self, member_id: str, group_id: str) -> str:
        """Their id for the member; while it waits for its first answer, the id that DescribeGroups shows."""
        if member_id not in self.ids:
            stem = member_id.rpartition("-")[0] + "-"
            for member in self.describe([group_id]).groups[0].members:
                if member.member_id not in self.ids.values() and member.member_id.startswith(stem):
                    self.ids[member_id] = member.member_id
        return self.ids.get(member_id, member_id)


def play(address: tuple[str, int], name: str) -> Iterator[str]:
    """Yield every difference."""
    ours, theirs = Ours(settings=settings_of({})), Theirs(address, f"{name}.{time.time_ns()}")
    groups: set[str] = {"g"}
    compared: set[int] = set()
    start, started = time.monotonic(), False
    for line in (TRACES / f"{name}.txt").read_text().splitlines():
        words, values = ([], {}) if line.startswith("  ") else read(line)
        if not words or words[0] in ("story", "history") or "DescribeGroupDetails" in words:
            continue
        if words[0] in ("settings", "topics"):
            ours.settings = settings_of(values) if words[0] == "settings" else ours.settings
            ours.topics = (
                {topic: int(count) for topic, count in values.items()} if words[0] == "topics" else ours.topics
            )
            continue
        if _has_no_counterpart(words):
            return
        if not started:
            ours.start()
            started = True
        groups |= {values.get("group", "g"), *values.get("groups", "g").split(",")}
        at_s = millis(words[1] if words[0] == "wait" else words[0]) / 1000
        late = LATE_S if words[0] == "wait" else LATE_S / 2
        theirs.listen(start + at_s + (-EARLY_S if at_s % 1 > 0.99 else late if at_s > 1 else 0), set())
        first = max(ours.tickets, default=0) + 1
        act(ours, words, values)
        if words[1] == "given":
            began = time.monotonic()
            _give(ours, theirs, words, values, first)
            compared |= set(range(first, max(ours.tickets) + 1))
            start += time.monotonic() - began
        elif words[1] == "ended":
            theirs.producers.end(words[2], values)
        elif words[0] != "wait":
            theirs.send(first, words, values)
        wanted = ours.answers.keys() - compared
        theirs.listen(time.monotonic() + (ANSWER_S if wanted else SURPLUS_S), wanted)
        for ticket in sorted((ours.answers.keys() | theirs.answers.keys()) - compared):
            compared.add(ticket)
            mine, other = ours.answers.get(ticket), theirs.answers.get(ticket)
            if mine is not None and other is not None:
                theirs.learn(mine, other)
            if _plain(mine, theirs) != _plain(other, theirs):
                yield f"{line}\n    #{ticket} ours   {_plain(mine, theirs)}\n    #{ticket} theirs {_plain(other, theirs)}"
        # All scenarios share the group without a name.
        asked = sorted(groups - {""})
        described = _describe(ours, asked)
        # A new group is visible only a moment after its answer.
        for wait_s in (0, 0.05, 0.2):
            time.sleep(wait_s)
            _learn_from_groups(ours, theirs, asked)
            mine, other = _plain(described, theirs), _plain(theirs.describe(asked), theirs)
            if mine == other:
                break
        if mine != other:
            yield f"{line}\n    groups ours   {mine}\n    groups theirs {other}"


def _has_no_counterpart(words: list[str]) -> bool:
    """Steps that change our coordinator and that Kafka does not have; the scenario ends there."""
    ends_in_parts = words[1] == "ended" and any(word.startswith(("groups=", "limit=", "epoch=")) for word in words)
    return words[0] == "restart" or words[1] == "topic_deleted" or "TriggerRebalance" in words or ends_in_parts


def _give(ours: Ours, theirs: Theirs, words: list[str], values: Values, first: int) -> None:
    members = [word.partition("/")[::2] for word in words[3:] if "=" not in word]
    for place, (client, instance) in enumerate(members):
        own = {"instance": instance} if instance else {}
        theirs.send(first + place, ["0", client, "JoinGroup", "v9" if instance else "v3"], {**values, **own})
        time.sleep(ONE_AFTER_ANOTHER_S)
    tickets = set(range(first, first + len(members)))
    theirs.listen(time.monotonic() + 5, tickets)
    for ticket in tickets & theirs.answers.keys():
        theirs.learn(ours.answers[ticket], theirs.answers[ticket])
    group = ours.coordinator.group(values.get("group", "g"))
    assert group is not None
    if words[2] == "Stable":
        shares = ",".join(f"{member}:p{place}" for place, member in enumerate(group.members))
        for place, member in enumerate(group.members):
            sync = {"member": member, "generation": "1", "protocol": group.protocol or "", "assign": shares}
            ticket = first + len(members) + place
            theirs.send(ticket, ["0", "c", "SyncGroup", "v3"], {**values, **sync})
            theirs.listen(time.monotonic() + 5, {ticket})


def _describe(ours: Ours, groups: list[str]) -> Message:
    ours.tickets[0] = 5
    ours.request("control", "DescribeGroups", 5, {"groups": ",".join(groups)})
    ticket = max(ours.tickets)
    del ours.tickets[ticket]
    return ours.answers.pop(ticket)


def _learn_from_groups(ours: Ours, theirs: Theirs, groups: list[str]) -> None:
    for group_id in groups:
        group = ours.coordinator.group(group_id)
        for member_id in group.members if group is not None else ():
            theirs.learn_id(member_id, group_id)


def _plain(value: Any, theirs: Theirs) -> Any:
    """A message as text and sorted lists, with our names and without what may differ."""
    if isinstance(value, Struct):
        fields = {declared.name: getattr(value, declared.name) for declared in type(value).FIELDS}
        if "groups" in fields and fields["groups"] and hasattr(fields["groups"][0], "group_type"):
            fields["groups"] = [
                g for g in fields["groups"] if g.group_id in ("g", "h", "i") or theirs.name in g.group_id
            ]
        return {
            name: _plain(item, theirs)
            for name, item in fields.items()
            if name not in NOT_COMPARED and item not in ([], "", b"", None)
        }
    if isinstance(value, list):
        return sorted((_plain(item, theirs) for item in value), key=repr)
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if not isinstance(text, str):
        return text
    for mine, other in theirs.ids.items():
        text = text.replace(other, mine)
    return text.replace(f"{theirs.name}.", "")


def _make_topics(address: tuple[str, int]) -> None:
    topics = [
        CreateTopicsRequest.Topic(name=name, num_partitions=count, replication_factor=1)
        for name, count in (("orders", 3), ("clicks", 1))
    ]
    with WireClient(address) as client:
        client.ask(CreateTopicsRequest(topics=topics, timeout_ms=5_000), 5)


@dataclass(frozen=True)
class Shape:
    """What a scenario needs of a broker: settings under Kafka's names, and the seconds until its last step."""

    settings: tuple[tuple[str, str], ...]
    seconds: float


def shape_of(name: str) -> Shape:
    settings: dict[str, str] = {}
    last_ms = -1
    for line in (TRACES / f"{name}.txt").read_text().splitlines():
        words, values = ([], {}) if line.startswith("  ") else read(line)
        if not words or words[0] in WITHOUT_TIME:
            # Later settings are those of a restart.
            settings |= values if words and words[0] == "settings" and last_ms < 0 else {}
        elif _has_no_counterpart(words):
            break
        else:
            last_ms = max(last_ms, millis(words[1] if words[0] == "wait" else words[0]))
    # Without a delay, the first member would not wait for the others of its scenario.
    if settings.get(INITIAL_DELAY, "0") == "0":
        settings[INITIAL_DELAY] = "500"
    return Shape(tuple(sorted(settings.items())), max(last_ms, 0) / 1000)


def play_all(address: tuple[str, int], names: list[str]) -> int:
    """Play the scenarios in parallel and print each with its differences; return how many differ that are not known to.

    Scenarios that differ are repeated with fewer in parallel: on a busy machine, successive requests may overtake each other.
    """
    _make_topics(address)
    surprises, left = names, TRIES
    while surprises and left:
        found, left = _at_once(address, surprises), left - 1
        surprises = [name for name in surprises if found[name] and name not in KNOWN]
        for name, differences in found.items():
            if name not in surprises or not left:
                known = f" ({KNOWN[name]})" if differences and name in KNOWN else ""
                print(f"{name}: {len(differences)} differences{known}", *differences, sep="\n", flush=True)
    return len(surprises)


def _at_once(address: tuple[str, int], names: list[str]) -> dict[str, list[str]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(lambda name: list(play(address, name)), names), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(prog="traces_on_kafka", description="Play golden scenarios beside a real Kafka.")
    parser.add_argument(
        "--longest", type=float, default=30, metavar="SECONDS", help="leave out longer scenarios (default: 30)"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios to play (default: all)")
    options = parser.parse_args()
    shapes = {name: shape_of(name) for name in options.names or sorted(path.stem for path in TRACES.glob("*.txt"))}
    of_settings: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, shape in shapes.items():
        if shape.seconds <= options.longest:
            of_settings.setdefault(shape.settings, []).append(name)
    surprises = 0
    try:
        for settings, names in of_settings.items():
            print(f"# {' '.join('='.join(pair) for pair in settings)}", flush=True)
            with ReferenceKafka(dict(settings)) as kafka:
                host, _, port = kafka.bootstrap_servers.rpartition(":")
                surprises += play_all((host, int(port)), names)
    except Unavailable as reason:
        print(f"skipped: no real Kafka here: {reason}")
        return 0
    played = sum(map(len, of_settings.values()))
    print(f"{played} of {len(shapes)} scenarios played, {len(shapes) - played} are longer than {options.longest:g} s")
    print(f"{surprises} differ unexpectedly")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
