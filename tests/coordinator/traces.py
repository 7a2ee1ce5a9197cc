"""Golden scenarios of the group coordinator: text files of requests, each followed by all that the core made of it.

A line that begins at the left margin is a comment (#), a setting, a request, `wait`, `restart` or `story`; the indented lines
below it are what came of it, written by `python -m tests.coordinator.traces --write` and reviewed as a diff.

    settings group.initial.rebalance.delay.ms=1000
    topics orders=3
    0.5 c1 JoinGroup v9 member=c1-A session=10 rebalance=60 protocols=range:one,sticky:two
    wait 3.0
    restart 5.0
    story

Times are seconds. What a request leaves out has the value that most scenarios want (see `REQUESTS`); the group is "g".
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.api.groups import GroupApi, Node
from broker.coordinator.coordinator import Coordinator
from broker.coordinator.records import (
    GenerationFloor,
    GroupMetadataRecord,
    GroupMetadataTombstone,
    HardRecord,
    OffsetCommitRecord,
    OffsetTombstone,
    from_row,
    to_row,
)
from broker.coordinator.settings import GroupSettings
from broker.coordinator.step import Effects, RequestContext
from broker.protocol.codec import decode, encode
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.wire_types import Message, Struct

TRACES = Path(__file__).parent / "traces"
WALL_MS = 1_000_000_000_000

ERRORS = {int(error): error.name for error in ErrorCode}

Values = dict[str, str]


# ---- requests ----------------------------------------------------------------------------------------------------


def _millis(seconds: str) -> int:
    return round(float(seconds) * 1000)


def _pairs(text: str) -> list[tuple[str, str]]:
    """ "a:1,b:2" as pairs; what has no colon has an empty second part."""
    return [(name, value) for name, _, value in (part.partition(":") for part in text.split(",") if part)]


def _partitions(text: str) -> dict[str, list[tuple[int, str]]]:
    """ "orders/0:5,orders/1:6" by topic."""
    out: dict[str, list[tuple[int, str]]] = {}
    for place, value in _pairs(text):
        topic, _, partition = place.partition("/")
        out.setdefault(topic, []).append((int(partition), value))
    return out


def _join(v: Values, version: int) -> Message:
    return JoinGroupRequest(
        group_id=v.get("group", "g"),
        session_timeout_ms=_millis(v.get("session", "10")),
        rebalance_timeout_ms=_millis(v.get("rebalance", "60")),
        member_id=v.get("member", ""),
        group_instance_id=v.get("instance"),
        protocol_type=v.get("type", "consumer"),
        protocols=[
            JoinGroupRequest.Protocol(name=name, metadata=metadata.encode())
            for name, metadata in _pairs(v.get("protocols", "range:one"))
        ],
        reason=v.get("reason"),
    )


def _sync(v: Values, version: int) -> Message:
    return SyncGroupRequest(
        group_id=v.get("group", "g"),
        generation_id=int(v["generation"]),
        member_id=v["member"],
        group_instance_id=v.get("instance"),
        protocol_type=v.get("type", "consumer"),
        protocol_name=v.get("protocol", "range"),
        assignments=[
            SyncGroupRequest.Assignment(member_id=member, assignment=assignment.encode())
            for member, assignment in _pairs(v.get("assign", ""))
        ],
    )


def _heartbeat(v: Values, version: int) -> Message:
    return HeartbeatRequest(
        group_id=v.get("group", "g"),
        generation_id=int(v["generation"]),
        member_id=v["member"],
        group_instance_id=v.get("instance"),
    )


def _leave(v: Values, version: int) -> Message:
    if version < 3:
        return LeaveGroupRequest(group_id=v.get("group", "g"), member_id=v["member"])
    member = LeaveGroupRequest.Member(
        member_id=v.get("member", ""), group_instance_id=v.get("instance"), reason=v.get("reason")
    )
    return LeaveGroupRequest(group_id=v.get("group", "g"), members=[member])


def _commit(v: Values, version: int) -> Message:
    return OffsetCommitRequest(
        group_id=v.get("group", "g"),
        generation_id_or_member_epoch=int(v.get("generation", "-1")),
        member_id=v.get("member", ""),
        group_instance_id=v.get("instance"),
        retention_time_ms=_millis(v["retention"]) if "retention" in v else -1,
        topics=[
            OffsetCommitRequest.Topic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.Partition(
                        partition_index=partition, committed_offset=int(offset), committed_metadata=v.get("metadata")
                    )
                    for partition, offset in partitions
                ],
            )
            for topic, partitions in _partitions(v["offsets"]).items()
        ],
    )


def _fetch(v: Values, version: int) -> Message:
    topics = [
        OffsetFetchRequest.Topic(name=topic, partition_indexes=[partition for partition, _ in partitions])
        for topic, partitions in _partitions(v.get("partitions", "")).items()
    ]
    asked = topics if "partitions" in v else None
    if version < 8:
        return OffsetFetchRequest(group_id=v.get("group", "g"), topics=asked)
    return OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id=v.get("group", "g"), topics=asked)])


def _delete_offsets(v: Values, version: int) -> Message:
    return OffsetDeleteRequest(
        group_id=v.get("group", "g"),
        topics=[
            OffsetDeleteRequest.Topic(
                name=topic,
                partitions=[OffsetDeleteRequest.Partition(partition_index=partition) for partition, _ in partitions],
            )
            for topic, partitions in _partitions(v["partitions"]).items()
        ],
    )


def _names(v: Values) -> list[str]:
    return v.get("groups", "g").split(",")


REQUESTS: dict[str, Callable[[Values, int], Message]] = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "Heartbeat": _heartbeat,
    "LeaveGroup": _leave,
    "OffsetCommit": _commit,
    "OffsetFetch": _fetch,
    "OffsetDelete": _delete_offsets,
    "DescribeGroups": lambda v, version: DescribeGroupsRequest(groups=_names(v)),
    "DescribeGroupDetails": lambda v, version: DescribeGroupDetailsRequest(groups=_names(v)),
    "DeleteGroups": lambda v, version: DeleteGroupsRequest(groups_names=_names(v)),
    "ListGroups": lambda v, version: ListGroupsRequest(),
    "FindCoordinator": lambda v, version: FindCoordinatorRequest(key=v.get("group", "g"), coordinator_keys=_names(v)),
}


# ---- what came of it, as text ------------------------------------------------------------------------------------


def show_seconds(ms: int) -> str:
    return f"{ms / 1000:g}"


def show_message(message: Message, version: int) -> str:
    """The fields of the version that say something; error codes by name, first."""
    shown = _show_fields(message, version)
    return f"{type(message).__name__.removesuffix('Response')} {shown}".rstrip()


def _show_fields(value: Struct, version: int) -> str:
    shown: list[str] = []
    for declared in type(value).FIELDS:
        item = getattr(value, declared.name)
        if (
            not declared.is_in(version)
            or declared.name == "throttle_time_ms"
            or item in (declared.default, "", b"", None)
        ):
            continue
        if declared.name == "error_code":
            shown.insert(0, ERRORS[item])
        elif declared.name != "authorized_operations":
            shown.append(f"{declared.name}={_show(item, version)}")
    return " ".join(shown)


def _show(value: Any, version: int) -> str:
    if isinstance(value, Struct):
        return "{" + _show_fields(value, version) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_show(item, version) for item in value) + "]"
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def show_record(record: HardRecord) -> str:
    match record:
        case GenerationFloor():
            return f"generation floor of {record.group_id}: {record.generation}"
        case GroupMetadataTombstone():
            return f"group {record.group_id}: tombstone"
        case OffsetTombstone():
            return f"offset of {record.group_id} {record.topic}/{record.partition}: tombstone"
        case OffsetCommitRecord():
            return f"offset of {record.group_id} {record.topic}/{record.partition}: {record.offset}"
        case GroupMetadataRecord():
            members = " ".join(f"{m.member_id}={m.assignment.decode('latin-1') or '(nothing)'}" for m in record.members)
            kind = f"{record.protocol_type or '-'}/{record.protocol or '-'}"
            return f"group {record.group_id}: generation {record.generation} {kind} leader {record.leader or '-'} {members}".rstrip()


# ---- running -----------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One scenario under way: the core, its simulated clock, and the log that a restart reads again."""

    settings: GroupSettings
    topics: dict[str, int] = field(default_factory=lambda: {"orders": 3})
    now_ms: int = 0
    ids: int = 0
    tickets: dict[int, int] = field(default_factory=dict)  # ticket -> api version
    rows: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)  # the compacted log
    floors: dict[str, int] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    wake_at: int | None = None

    def partition_count(self, topic: str) -> int | None:
        return self.topics.get(topic)

    def start(self) -> list[str]:
        """A coordinator as it comes out of the log."""
        self.coordinator = Coordinator(self.settings, self._new_id)
        self.api = GroupApi(self.coordinator, self, Node(1, "localhost", 9092))
        offsets: dict[str, list[HardRecord]] = {}
        for key, (value, timestamp) in self.rows.items():
            record = from_row(key, value, timestamp)
            assert record is not None
            if isinstance(record, OffsetCommitRecord):
                offsets.setdefault(record.group_id, []).append(record)
            else:
                self.coordinator.apply(record)
        for group_id, generation in self.floors.items():
            self.coordinator.apply(GenerationFloor(group_id, generation))
        self.coordinator.expect_offsets(offsets)
        self.tickets.clear()
        out = self._effects(self.coordinator.resume(self.now_ms, WALL_MS + self.now_ms))
        self.stored = offsets
        return out

    def request(self, client: str, api: str, version: int, values: Values) -> list[str]:
        request = REQUESTS[api](values, version)
        request = decode(type(request), encode(request, version), version)
        ticket = max(self.tickets, default=0) + 1
        self.tickets[ticket] = version
        for group_id in self.api.groups_to_load(request):
            self.coordinator.load(group_id, self.stored.pop(group_id, []))
        context = RequestContext(ticket, version, client, "/127.0.0.1", "User:ANONYMOUS", WALL_MS + self.now_ms)
        effects = self.api.handle(request, context, self.now_ms)
        parked = [] if any(reply.ticket == ticket for reply in effects.replies) else [f"#{ticket} is parked"]
        return parked + self._effects(effects)

    def let_time_pass(self, until_ms: int) -> list[str]:
        out = []
        while self.wake_at is not None and self.wake_at <= until_ms:
            self.now_ms = max(self.now_ms, self.wake_at)
            lines = self._effects(self.coordinator.advance(self.now_ms, WALL_MS + self.now_ms))
            if lines[:-1]:
                out += [f"at {show_seconds(self.now_ms)}", *lines]
        self.now_ms = max(self.now_ms, until_ms)
        return out

    def story(self, group_id: str) -> list[str]:
        out = []
        for event in self.coordinator.story(group_id):
            members = " ".join([*(f"+{m}" for m in event.joined), *(f"-{m}" for m in event.left)])
            detail = f" ({event.detail})" if event.detail else ""
            out.append(
                f"{show_seconds(event.wall_ms - WALL_MS)} generation {event.generation}: {event.cause.value}{detail} {members}".rstrip()
            )
        return out

    def _new_id(self) -> str:
        self.ids += 1
        return chr(ord("A") + self.ids - 1)

    def _effects(self, effects: Effects) -> list[str]:
        out = [f"record {show_record(record)}" for record in effects.records]
        for record in effects.records:
            self._store(record)
        for reply in effects.replies:
            version = self.tickets[reply.ticket]
            response = decode(type(reply.response), encode(reply.response, version), version)
            out.append(f"#{reply.ticket} <- {show_message(response, version)}")
        out += self._changed_states()
        self.wake_at = effects.wake_at_ms
        # The check for expired offsets, hours away in these scenarios, is always there.
        near = self.wake_at is not None and self.wake_at < self.now_ms + 3_600_000
        return [*out, f"wake at {show_seconds(self.wake_at) if near and self.wake_at is not None else '-'}"]

    def _store(self, record: HardRecord) -> None:
        if isinstance(record, GenerationFloor):
            self.floors.pop(record.group_id, None)
            if record.generation is not None:
                self.floors[record.group_id] = record.generation
            return
        row = to_row(record)
        self.rows.pop(row.key, None)
        if row.value is not None:
            self.rows[row.key] = (row.value, row.timestamp_ms)

    def _changed_states(self) -> list[str]:
        ids = [
            group_id
            for group_id in [*self.states, "g", "h"]
            if self.coordinator.group(group_id) or group_id in self.states
        ]
        out = []
        for group_id in dict.fromkeys(ids):
            group = self.coordinator.group(group_id)
            state = f"{group.state.value}, generation {group.generation}" if group is not None else "Dead"
            if self.states.get(group_id, "Dead") != state:
                out.append(f"{group_id} is {state}")
            self.states[group_id] = state
        return out


def play(text: str) -> str:
    """The scenario with what comes of each of its lines."""
    run, out, started = Run(settings=_settings({})), [], False
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        out.append(line)
        words = line.split()
        if not words or line.startswith("#"):
            continue
        values = dict(word.split("=", 1) for word in words if "=" in word)
        values = {
            name: value.replace("_", " ") if name in ("reason", "metadata") else value for name, value in values.items()
        }
        if words[0] == "settings":
            run.settings = _settings(values)
        elif words[0] == "topics":
            run.topics = {name: int(count) for name, count in values.items()}
        else:
            if not started:
                run.start()
                started = True
            out += [f"    {shown}" for shown in _act(run, words, values)]
    return "\n".join(out) + "\n"


def _settings(values: Values) -> GroupSettings:
    given = {name.replace(".", "_"): int(value) for name, value in values.items()}
    return GroupSettings(
        **{"group_initial_rebalance_delay_ms": 0, "offsets_retention_check_interval_ms": 86_400_000, **given}
    )


def _act(run: Run, words: list[str], values: Values) -> list[str]:
    if words[0] == "wait":
        return run.let_time_pass(_millis(words[1]))
    if words[0] == "restart":
        run.now_ms = _millis(words[1])
        return run.start()
    if words[0] == "story":
        return run.story(words[1] if len(words) > 1 else "g")
    at_ms = _millis(words[0])
    passed = run.let_time_pass(at_ms)
    return passed + run.request(words[1], words[2], int(words[3].removeprefix("v")), values)


def main() -> None:
    """Write what comes of each scenario into its file (--write), or say which would change."""
    for path in sorted(TRACES.glob("*.txt")):
        before = path.read_text()
        after = play(before)
        if before != after:
            print(("wrote " if "--write" in sys.argv else "differs: ") + path.name)
            if "--write" in sys.argv:
                path.write_text(after)


if __name__ == "__main__":
    main()
