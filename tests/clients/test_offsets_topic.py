"""`__consumer_offsets` as any consumer reads it: commits, members, and tombstones."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.clients.adapters import Client, Consumer, Membership, Record
from tests.clients.group import Group
from tests.clients.records import make_topic, produce, values
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl

TOPIC = "__consumer_offsets"
PARTITIONS = 50
Offset = tuple[str, str, int]
"""Group, topic, partition."""


class Fields:
    """Reads Kafka's fields in order; an independent implementation of the published schemas."""

    def __init__(self, raw: bytes, *, versions: tuple[int, ...] = ()) -> None:
        self.raw, self.at = raw, 0
        self.version = self.number("h")
        assert not versions or self.version in versions
        # Values of version 4 have varint sizes and, after each struct, tagged fields, of which there are none.
        self._compact = bool(versions) and self.version == 4

    def number(self, form: str) -> int:
        (found,) = struct.unpack_from(f">{form}", self.raw, self.at)
        self.at += struct.calcsize(f">{form}")
        return int(found)

    def text(self) -> str | None:
        size = self.size("h")
        return None if size < 0 else self._take(size).decode()

    def blob(self) -> bytes:
        return self._take(self.size("i"))

    def size(self, form: str) -> int:
        if not self._compact:
            return self.number(form)
        size, shift = 0, 0
        while (digit := self.number("B")) & 0x80:
            size, shift = size | (digit & 0x7F) << shift, shift + 7
        return (size | digit << shift) - 1

    def end_structure(self) -> None:
        assert not self._compact or self.number("B") == 0

    def end(self) -> None:
        self.end_structure()
        assert self.at == len(self.raw)

    def _take(self, size: int) -> bytes:
        found = self.raw[self.at : self.at + size]
        self.at += size
        assert len(found) == size
        return found


def is_classic(record: Record) -> bool:
    """Whether a record is a commit or a classic group. A cluster may also hold groups of newer types, of other tests."""
    assert record.key is not None
    return Fields(record.key).version in {1, 2}


def key_of(record: Record) -> Offset | str:
    """What a record is about: a committed offset or a classic group."""
    assert record.key is not None
    fields = Fields(record.key)
    group = fields.text() or ""
    key = group if fields.version == 2 else (group, fields.text() or "", fields.number("i"))
    fields.end()
    return key


@dataclass(frozen=True)
class Commit:
    offset: int
    leader_epoch: int
    metadata: str | None
    committed_ms: int


def commit_of(value: bytes) -> Commit:
    fields = Fields(value, versions=(3, 4))
    found = Commit(fields.number("q"), fields.number("i"), fields.text(), fields.number("q"))
    fields.end()
    return found


def group_of(value: bytes) -> dict[str, Any]:
    fields = Fields(value, versions=(3, 4))
    found: dict[str, Any] = {
        "protocol_type": fields.text(),
        "generation": fields.number("i"),
        "protocol": fields.text(),
        "leader": fields.text(),
        "since_ms": fields.number("q"),
    }
    found["members"] = [_member_of(fields) for _ in range(fields.size("i"))]
    fields.end()
    return found


def _member_of(fields: Fields) -> dict[str, Any]:
    found = {
        "member_id": fields.text(),
        "instance": fields.text(),
        "client_id": fields.text(),
        "host": fields.text(),
        "rebalance_timeout_ms": fields.number("i"),
        "session_timeout_ms": fields.number("i"),
        "topics": _topics_of(fields.blob()),
        "owned": _owned_of(fields.blob()),
    }
    fields.end_structure()
    return found


def _topics_of(subscription: bytes) -> list[str | None]:
    fields = Fields(subscription)
    return [fields.text() for _ in range(fields.number("i"))]


def _owned_of(assignment: bytes) -> dict[str | None, list[int]]:
    fields = Fields(assignment)
    return {fields.text(): [fields.number("i") for _ in range(fields.number("i"))] for _ in range(fields.number("i"))}


def partition_of(group: str) -> int:
    """The absolute value of Java's 32-bit hash of the name, modulo the number of partitions."""
    code = 0
    for letter in group:
        code = (code * 31 + ord(letter)) & 0xFFFFFFFF
    return min(code, 2**32 - code) % PARTITIONS


class Reading:
    """What a consumer of the topic has read about one group so far."""

    def __init__(self, consumer: Consumer, group: str) -> None:
        self._consumer, self._group = consumer, group
        self.records: list[Record] = []

    def until(self, met: Callable[[], bool], what: str, within_s: float = 30) -> None:
        deadline = time.monotonic() + within_s
        while not met():
            assert time.monotonic() < deadline, f"never read {what}, but {self.records}"
            for record in filter(is_classic, self._consumer.poll(0.2)):
                key = key_of(record)
                if self._group in (key, key[0]):
                    self.records.append(record)

    def commits(self) -> dict[int, list[Commit | None]]:
        """The commits of each partition in order; None is a tombstone."""
        found: dict[int, list[Commit | None]] = {}
        for record in self.records:
            if not isinstance(key := key_of(record), str):
                value = None if record.value is None else commit_of(record.value)
                found.setdefault(key[2], []).append(value)
        return found

    def groups(self) -> list[dict[str, Any] | None]:
        return [
            None if record.value is None else group_of(record.value)
            for record in self.records
            if isinstance(key_of(record), str)
        ]


def test_a_consumer_of_the_topic_reads_commits_as_they_happen(
    cluster: Cluster, client: Client, client_name: str
) -> None:
    bootstrap, name = cluster.bootstrap_servers, fresh("commits")
    topic = make_topic(client, cluster, 2, "commits")
    began_ms = time.time_ns() // 1_000_000
    with (
        Group(client_name, bootstrap, name, topic) as group,
        contextlib.closing(client.reader(bootstrap, TOPIC, range(PARTITIONS))) as consumer,
    ):
        reading = Reading(consumer, name)
        (member,) = group.start(1)
        group.wait_until_shared([2])
        for count in (10, 20, 30):
            produce(client, cluster, topic, values(f"v{count}", 20), partitions=2)
            group.wait_until_committed({0: count, 1: count})
        expected = committed_by(group)
        reading.until(lambda: offsets_in(reading) == expected, f"the commits {expected}")
        ended_ms = time.time_ns() // 1_000_000
        commits = [commit for of_one in reading.commits().values() for commit in of_one]
        assert all(commit and not commit.metadata for commit in commits)
        assert all(commit and began_ms - 1 <= commit.committed_ms <= ended_ms + 1 for commit in commits)

        last = reading.groups()[-1]
        assert last is not None
        (described,) = Kgctl(bootstrap).rows("groups", "describe", name, "--members")
        assert (last["protocol_type"], last["protocol"]) == ("consumer", "range")
        assert last["leader"] == described["consumer_id"]
        (written,) = last["members"]
        assert (written["member_id"], written["instance"]) == (described["consumer_id"], None)
        assert (written["client_id"], written["host"]) == (member.name, described["host"])
        assert (written["topics"], written["owned"]) == ([topic], {topic: [0, 1]})
        assert written["session_timeout_ms"] == 3000

        member.leave()
        reading.until(lambda: (reading.groups()[-1] or {}).get("members") == [], "the group without members")
        empty = reading.groups()[-1]
        assert empty is not None
        assert (empty["protocol_type"], empty["protocol"], empty["leader"]) == ("consumer", None, None)
        assert empty["generation"] == last["generation"] + 1

        since = [kept["since_ms"] for kept in reading.groups() if kept]
        assert since == sorted(since)
        assert began_ms - 1 <= since[0] <= last["since_ms"] <= ended_ms + 1
        deleted = Kgctl(bootstrap)("groups", "delete", name, "--execute")
        assert deleted.exit_code == 0, deleted.output
        reading.until(lambda: reading.groups()[-1] is None, "the group's tombstone")
        assert {p: of_one[-1] for p, of_one in reading.commits().items()} == {0: None, 1: None}
        assert offsets_in(reading) == expected
        assert [group for group in reading.groups() if group is None] == [None]
    assert {record.partition for record in reading.records} == {partition_of(name)}
    offsets = [record.offset for record in reading.records]
    assert offsets == sorted(set(offsets))


def committed_by(group: Group) -> dict[int, list[int]]:
    """The offsets that members report as committed, by partition."""
    found: dict[int, list[int]] = {}
    for member in group.members:
        for event in member.events:
            if event["event"] == "committed":
                for partition, offset in event["offsets"].items():
                    found.setdefault(int(partition), []).append(offset)
    return found


def offsets_in(reading: Reading) -> dict[int, list[int]]:
    return {p: [commit.offset for commit in of_one if commit] for p, of_one in reading.commits().items()}


def test_a_group_that_subscribes_to_the_topic_reads_about_itself(cluster: Cluster, client: Client) -> None:
    name, owned = fresh("of-itself"), set[int]()

    def change(kind: str, partitions: list[int]) -> None:
        (owned.update if kind == "assigned" else owned.difference_update)(partitions)

    membership = Membership(name, TOPIC, client_id="self", on_change=change)
    with contextlib.closing(client.member(cluster.bootstrap_servers, membership)) as consumer:
        reading = Reading(consumer, name)
        reading.until(lambda: bool(reading.groups()), "its own group")
        assert owned == set(range(PARTITIONS))
        found = reading.groups()[-1]
        assert found is not None
        (member,) = found["members"]
        assert (member["client_id"], member["owned"]) == ("self", {TOPIC: list(range(PARTITIONS))})
