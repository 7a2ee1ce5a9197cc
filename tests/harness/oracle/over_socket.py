"""Plays the recorded walks on a running broker over sockets, to cover everything between the core and the wire.

    python -m tests.harness.oracle.over_socket HOST:PORT [RECORDING] [--seeds 1-50] [--patience-s 1]

The broker makes its own member ids; each is bound to the symbol of the recording where it first appears.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import select
import socket
import struct
import sys
import time
import uuid
from collections import defaultdict
from typing import Any

from broker.protocol import frames
from broker.protocol.api_keys import APIS
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.wire_types import Message, Struct
from tests.harness.oracle import replay
from tests.harness.oracle.replay import Difference

ANSWER_WITHIN_S = 5.0
UUID_FORM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DESCRIBE_VERSION = 5
BY_NAME = {api.name: api for api in APIS.values()}
Address = tuple[str, int]


class Line:
    """One connection of a client, with at most one unanswered request."""

    def __init__(self, address: Address) -> None:
        self.sock = socket.create_connection(address, 10)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.step: dict[str, Any] | None = None
        self._count = 0
        self._received = b""
        # A request on a connection that the broker has not accepted yet would be overtaken by requests on older connections.
        self.ask(DescribeGroupsRequest(groups=[]), DESCRIBE_VERSION)

    def send(self, message: Message, version: int, client: str) -> None:
        self._count += 1
        self.sock.sendall(frames.request_frame(message, version, self._count, client))

    def answer(self, response: type[Message], version: int) -> Message | None:
        """Read once; return the response if it is complete."""
        received = self.sock.recv(1 << 16)
        if not received:
            raise ConnectionResetError("the broker closed the connection")
        self._received += received
        if len(self._received) < 4:
            return None
        end = 4 + struct.unpack_from(">i", self._received)[0]
        if len(self._received) < end:
            return None
        frame, self._received = self._received[4:end], self._received[end:]
        count, message = frames.decode_response(response, frame, version)
        assert count == self._count, f"answer {count} to request {self._count}"
        return message

    def ask(self, message: Message, version: int) -> Any:
        self.send(message, version, "control")
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while time.monotonic() < deadline:
            if select.select([self.sock], [], [], 0.5)[0]:
                found = self.answer(APIS[message.API_KEY].response, version)
                if found is not None:
                    return found
        raise TimeoutError(type(message).__name__)


class Names:
    """The symbols of a recording and their values on this broker."""

    def __init__(self, groups: list[str]) -> None:
        tag = uuid.uuid4().hex[:8]
        self.live = {symbol: f"walk-{tag}-{symbol[1:]}" for symbol in (*groups, "$G0")}
        self.symbol = {live: symbol for symbol, live in self.live.items()}

    def bind(self, symbol: str, live: str) -> None:
        self.live[symbol], self.symbol[live] = live, symbol

    def living(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.living(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.living(item) for item in value]
        return self.live.get(value, value) if isinstance(value, str) else value

    def recorded(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.recorded(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.recorded(item) for item in value]
        if not isinstance(value, str):
            return value
        if value in self.symbol:
            return self.symbol[value]
        for live, symbol in self.symbol.items():
            if symbol.startswith("$G"):  # group names occur inside messages too
                value = value.replace(live, symbol)
        return value


class SocketPlayer:
    """The clients of one walk."""

    def __init__(self, address: Address, groups: list[str]) -> None:
        self.address, self.names, self.groups = address, Names(groups), groups
        self.lines: dict[str, list[Line]] = defaultdict(list)
        self.asked: dict[int, dict[str, Any]] = {}
        self.control = Line(address)

    def close(self) -> None:
        for line in (self.control, *(line for lines in self.lines.values() for line in lines)):
            line.sock.close()

    def send(self, step: dict[str, Any]) -> None:
        self.asked[step["t"]] = step
        free = [line for line in self.lines[step["client"]] if line.step is None]
        line = free[0] if free else Line(self.address)
        if not free:
            self.lines[step["client"]].append(line)
        line.step = step
        request = replay.build(BY_NAME[step["api"]].request, self.names.living(step["request"]))
        line.send(request, step["version"], step["client"])

    def answers(self, wanted: set[int], within_s: float) -> list[tuple[int, Message]]:
        """What arrives until everything expected has arrived or the time is over."""
        came: list[tuple[int, Message]] = []
        deadline = time.monotonic() + within_s
        while True:
            waiting = {line.sock: line for lines in self.lines.values() for line in lines if line.step is not None}
            left = max(0.0, deadline - time.monotonic()) if wanted - {to for to, _ in came} else 0.0
            ready = select.select(list(waiting), [], [], left)[0] if waiting else []
            for sock in ready:
                step = waiting[sock].step
                assert step is not None
                message = waiting[sock].answer(BY_NAME[step["api"]].response, step["version"])
                if message is not None:
                    waiting[sock].step = None
                    came.append((step["t"], message))
            if not ready and (not wanted - {to for to, _ in came} or time.monotonic() >= deadline):
                return came

    def describe(self) -> Message:
        request = DescribeGroupsRequest(groups=[self.names.live[symbol] for symbol in self.groups])
        answer: Message = self.control.ask(request, DESCRIBE_VERSION)
        return answer

    def play(self, step: dict[str, Any], patience_s: float) -> list[Difference]:
        where = f"step {step['t']} {step['api']} v{step['version']}"
        self.send(step)
        came = self.answers({reply["to"] for reply in step["replies"]}, ANSWER_WITHIN_S)
        # DescribeGroups may overtake the request, so the state may lag behind.
        described = self.describe()
        came += self.answers(set(), 0)
        deadline = time.monotonic() + patience_s
        while True:
            ids = self._bind_new(where, step, [*(message for _, message in came), described])
            state = self._state(described)
            if (state == step["state"] and not ids) or time.monotonic() >= deadline:
                break
            described = self.describe()
        answers = [(to, self._form(message, self.asked[to]["version"])) for to, message in came]
        out = [*ids, *replay._compare_answers(where, self, step["replies"], answers, self.groups)]  # type: ignore[arg-type]
        if state != step["state"]:
            out.append(Difference(f"{where}: state after", step["state"], state))
        return out

    def _bind_new(self, where: str, step: dict[str, Any], messages: list[Message]) -> list[Difference]:
        unknown = {live for message in messages for live in _member_ids(message)} - self.names.symbol.keys()
        unknown = {live for live in unknown if live and not live.startswith("ghost")}
        for symbol, live in zip(step["new"].keys() - self.names.live.keys(), sorted(unknown), strict=False):
            self.names.bind(symbol, live)
        forms = {symbol: UUID_FORM.sub("*", self.names.live.get(symbol, "")) for symbol in step["new"]}
        if forms != step["new"] or unknown - self.names.symbol.keys():
            return [Difference(f"{where}: new member ids", step["new"], [forms, sorted(unknown)])]
        return []

    def _form(self, message: Message, version: int) -> Any:
        # Sort after the names are replaced: the order of live ids is arbitrary.
        return _sorted(self.names.recorded(_plain(message, version)))

    def _state(self, described: Message) -> dict[str, Any]:
        form = self._form(described, DESCRIBE_VERSION)
        return {group["group_id"]: replay._state(group) for group in form["groups"]}


def _member_ids(message: Message) -> list[str]:
    holders = [*getattr(message, "members", []), *(m for g in getattr(message, "groups", []) for m in _members(g))]
    return [getattr(message, "member_id", ""), *(holder.member_id for holder in holders)]


def _members(group: Any) -> list[Any]:
    return list(getattr(group, "members", []))


def _plain(value: Any, version: int, name: str = "") -> Any:
    if isinstance(value, Struct):
        fields = {
            f.name: _plain(getattr(value, f.name), version, f.name)
            for f in type(value).FIELDS
            if f.is_in(version) and f.name not in replay.NOT_RECORDED
        }
        if "node_id" in fields:
            fields |= {key: place for key, place in replay.PLACE_OF.items() if fields[key] not in (-1, "")}
        return fields
    if isinstance(value, list):
        return [_plain(item, version) for item in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if name == "authorized_operations":
        return None if value == replay.NO_OPERATIONS else [bit for bit in range(31) if value >> bit & 1]
    return value


def _sorted(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return replay._in_order([_sorted(item) for item in value], replay.SORTED_BY.get(name))
    return value


def play_walk(address: Address, walk: dict[str, Any], patience_s: float = 1.0) -> list[Difference]:
    """The differences of the first step that has any; later ones are often only consequences."""
    with contextlib.closing(SocketPlayer(address, walk["groups"])) as player:
        for step in walk["steps"]:
            found = player.play(step, patience_s)
            if found:
                return [Difference(f"seed {walk['seed']} {one.where}", one.expected, one.got) for one in found]
    return []


def make_topics(address: Address, topics: dict[str, int]) -> None:
    """Create the topics of a recording, unless they exist already."""
    wanted = [CreateTopicsRequest.Topic(name=n, num_partitions=p, replication_factor=1) for n, p in topics.items()]
    line = Line(address)
    with line.sock:
        line.ask(CreateTopicsRequest(topics=wanted), 5)


def address_of(bootstrap: str) -> Address:
    host, _, port = bootstrap.rpartition(":")
    return host, int(port)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bootstrap")
    parser.add_argument("recording", nargs="?", default="classic-4.1.jsonl.gz")
    parser.add_argument("--seeds", default="1-100000", metavar="FIRST-LAST")
    parser.add_argument("--patience-s", type=float, default=1.0, help="how long the state may lag behind the answer")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    header, walks = replay.read(options.recording)
    address, differing = address_of(options.bootstrap), 0
    make_topics(address, header["topics"])
    chosen = [walk for walk in walks if int(first) <= walk["seed"] <= int(last or first)]
    for walk in chosen:
        found = play_walk(address, walk, options.patience_s)
        differing += bool(found)
        for difference in found:
            print(difference)
    print(f"{len(chosen)} walks, {sum(len(walk['steps']) for walk in chosen)} steps, {differing} walks differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
