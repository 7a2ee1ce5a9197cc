"""Ten thousand groups with lag in ten partitions, one in ten with a live member: the cost of requests about all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import pipelines, wire
from bench.wire import Refused
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from broker.protocol.wire_types import Message

TOPIC = "bench"  # the topic in the assignments of `wire`
PARTITIONS = 10
RECORDS = 20  # per partition; groups commit offsets below PARTITIONS, so each has lag in each partition
ONE_LIVES_OF = 10
# Members send no heartbeats, so sessions must outlast the measurement.
SESSION_TIMEOUT_MS = 300_000
LONGEST_COMMAND_S = 120.0


@dataclass(frozen=True)
class Census:
    """The groups of the measurement; `living` have a member."""

    names: list[str]
    living: list[str]


def populate(address: tuple[str, int], count: int, first: int = 0) -> Census:
    """Commit for groups `first` to `count` as a simple consumer, then join one member to some of them."""
    if not first:
        wire.make_topic(address, TOPIC, PARTITIONS)
        wire.produce(address, TOPIC, PARTITIONS, RECORDS)
    names = [f"bench-group-{number:05}" for number in range(first, count)]
    committed = pipelines.ask_all(address, [_commit(name) for name in names])
    _expect_none([p.error_code for answer in committed for t in answer.topics for p in t.partitions], "commit")
    living = names[::ONE_LIVES_OF]
    members = _join(address, living, [""] * len(living))
    joined = _join(address, living, [answer.member_id for answer in members])
    _expect_none([answer.error_code for answer in joined], "join")
    synced = pipelines.ask_all(
        address,
        [
            wire.sync_request(group, answer.member_id, answer.generation_id, [answer.member_id])
            for group, answer in zip(living, joined, strict=True)
        ],
    )
    _expect_none([answer.error_code for answer in synced], "sync")
    return Census(names, living)


def list_s(address: tuple[str, int], census: Census) -> float:
    """Seconds of one ListGroups, up to the last byte of the response."""
    took, (answer,) = _timed(address, [ListGroupsRequest()])
    listed = Counter(row.group_state for row in answer.groups if row.group_id.startswith("bench-group-"))
    _expect_states(listed, census)
    return took


def describe_s(address: tuple[str, int], census: Census, at_once: int) -> float:
    """Seconds to describe all groups, with consecutive requests on one connection."""
    took, answers = _timed(address, [DescribeGroupsRequest(groups=list(some)) for some in _chunks(census, at_once)])
    rows = [row for answer in answers for row in answer.groups]
    _expect_none([row.error_code for row in rows], "DescribeGroups")
    _expect_states(Counter(row.group_state for row in rows), census)
    return took


def fetch_s(address: tuple[str, int], census: Census, at_once: int) -> float:
    """Seconds to fetch all offsets of all groups, with many groups per request (KIP-709)."""
    asked = [
        OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id=name, topics=None) for name in some])
        for some in _chunks(census, at_once)
    ]
    took, answers = _timed(address, asked)
    rows = [row for answer in answers for row in answer.groups]
    _expect_none([row.error_code for row in rows], "OffsetFetch")
    found = {row.group_id: sorted(_commits_of(row)) for row in rows}
    made = [(TOPIC, number, number) for number in range(PARTITIONS)]
    if len(found) != len(census.names) or any(found.get(name) != made for name in census.names):
        raise Refused("OffsetFetch: the fetched offsets differ from the committed ones")
    return took


def _commits_of(row: OffsetFetchResponse.Group) -> Iterable[tuple[str, int, int]]:
    return ((topic.name, p.partition_index, p.committed_offset) for topic in row.topics for p in topic.partitions)


@dataclass(frozen=True)
class Ran:
    """A successful run of a program: its duration and peak memory."""

    seconds: float
    peak_mb: float


def kgctl(bootstrap: str, census: Census, *words: str) -> Ran:
    """Run the command as a user would, with its output in a file. Refused unless the output has a line for each group."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
    command = [sys.executable, "-P", "-m", "kgctl", *words, "--bootstrap", bootstrap]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as stderr:
        began = time.perf_counter()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=stderr, env=environment)
        status, usage = _ended(child)
        took = time.perf_counter() - began
        if status:
            stderr.seek(0)
            raise Refused(f"kgctl {' '.join(words)} ended with {status}: {stderr.read(300).decode(errors='replace')!r}")
        out.seek(0)
        # Linux counts in KiB, macOS in bytes.
        peak = usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
        found = {line.split()[0].decode() for line in out if line.strip()}
        if missing := set(census.names) - found:
            raise Refused(f"kgctl {' '.join(words)} omitted {len(missing)} groups")
        return Ran(took, peak)


def _ended(child: subprocess.Popen[bytes]):  # type: ignore[no-untyped-def]
    deadline = time.perf_counter() + LONGEST_COMMAND_S
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, usage
        if time.perf_counter() > deadline:
            child.kill()
            child.wait()
            raise Refused(f"kgctl did not exit within {LONGEST_COMMAND_S:.0f} s")
        time.sleep(0.002)


def _join(address: tuple[str, int], groups: Sequence[str], members: Sequence[str]) -> list:  # type: ignore[type-arg]
    asked = [
        wire.join_request(group, member, SESSION_TIMEOUT_MS) for group, member in zip(groups, members, strict=True)
    ]
    answers = pipelines.ask_all(address, asked)
    _expect_none([a.error_code for a in answers if a.error_code != ErrorCode.MEMBER_ID_REQUIRED], "join")
    return answers


def _commit(group: str) -> OffsetCommitRequest:
    at = [
        OffsetCommitRequest.Partition(partition_index=number, committed_offset=number, committed_metadata="")
        for number in range(PARTITIONS)
    ]
    topic = OffsetCommitRequest.Topic(name=TOPIC, partitions=at)
    return OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=[topic])


def _timed(address: tuple[str, int], messages: Sequence[Message]) -> tuple[float, list]:  # type: ignore[type-arg]
    """Send requests and receive responses. Encoding and decoding are not part of the measured time."""
    framed = [wire.frame(message) for message in messages]
    with wire.connect(address) as sock:
        wire.answers(sock)
        began = time.perf_counter()
        raw = [wire.ask_raw(sock, request) for request in framed]
        took = time.perf_counter() - began
    return took, [wire.answer_to(message, answer[4:]) for message, answer in zip(messages, raw, strict=True)]


def _chunks(census: Census, size: int) -> Iterable[list[str]]:
    return (census.names[start : start + size] for start in range(0, len(census.names), size))


def _expect_states(seen: Counter[str], census: Census) -> None:
    wanted = {"Stable": len(census.living), "Empty": len(census.names) - len(census.living)}
    if seen != wanted:
        raise Refused(f"the groups are {dict(seen)}, not {wanted}")


def _expect_none(codes: list[int], what: str) -> None:
    if failed := Counter(code for code in codes if code):
        raise Refused(f"{what}: errors {dict(failed)}")
