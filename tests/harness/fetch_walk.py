"""A walk through fetch sessions (KIP-227) on any broker, and what it answered, line by line.

    python -m tests.harness.fetch_walk HOST:PORT

Ids of sessions are numbered in the order in which they appear, and topics have their names, so that two brokers write the same lines.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_records import DeleteRecordsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.fetch import FetchRequest
from tests.harness.requests import create_topic, metadata_of, produce, values_of
from tests.harness.wire_client import WireClient

BY_NAME, BY_ID = 12, 17
ABSENT = "absent"
ABSENT_ID = bytes(15) + b"\x09"
# Asks for (topic, partition): offset, or (offset, leader epoch).
Offsets = dict[tuple[str, int], int | tuple[int, int]]


class Walk:
    """Sends fetches of sessions with the names that the caller gives, and writes down the answers."""

    def __init__(self, client: WireClient, version: int) -> None:
        self.lines: list[str] = []
        self._client = client
        self._version = version
        self._ids: dict[str, bytes] = {ABSENT: ABSENT_ID}
        self._sessions: dict[int, str] = {0: "none"}

    def create(self, name: str, partitions: int = 1) -> None:
        self._ids[name] = create_topic(self._client, name, partitions).topic_id
        until(lambda: produce(self._client, name, b"first").error_code == ErrorCode.NONE)

    def delete(self, name: str) -> None:
        self._client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=5000), 3)
        until(lambda: self._metadata_error(name) != ErrorCode.NONE)

    def _metadata_error(self, name: str) -> int:
        return int(metadata_of(self._client, name, create=False).topics[0].error_code)

    def produce(self, topic: str, *values: bytes, partition: int = 0) -> None:
        assert produce(self._client, topic, *values, partition=partition).error_code == ErrorCode.NONE

    def delete_records(self, topic: str, before: int) -> None:
        rows = [DeleteRecordsRequest.Partition(partition_index=0, offset=before)]
        topics = [DeleteRecordsRequest.Topic(name=topic, partitions=rows)]
        self._client.ask(DeleteRecordsRequest(topics=topics, timeout_ms=5000))

    def request(
        self,
        session: str,
        epoch: int,
        offsets: Offsets | None = None,
        forget: dict[str, list[int]] | None = None,
        **arguments: Any,
    ) -> FetchRequest:
        by_id = arguments.pop("version", self._version) >= 13
        topics = [
            FetchRequest.Topic(
                **self._named(name, by_id),
                partitions=[
                    FetchRequest.Partition(
                        partition=index,
                        fetch_offset=at[0] if isinstance(at, tuple) else at,
                        current_leader_epoch=at[1] if isinstance(at, tuple) else -1,
                        partition_max_bytes=1 << 20,
                    )
                ],
            )
            for (name, index), at in (offsets or {}).items()
        ]
        forgotten = [
            FetchRequest.ForgottenTopic(**self._named(name, by_id), partitions=indexes)
            for name, indexes in (forget or {}).items()
        ]
        return FetchRequest(
            session_id=next((found for found, name in self._sessions.items() if name == session), 99),
            session_epoch=epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
            **{"max_wait_ms": 0, "min_bytes": 1, **arguments},
        )

    def fetch(self, session: str, epoch: int, offsets: Offsets | None = None, **arguments: Any) -> None:
        """A fetch that is answered at once, unless `max_wait_ms` is given."""
        version = arguments.get("version", self._version)
        self.answered(
            f"{session} {epoch}", self._client.ask(self.request(session, epoch, offsets, **arguments), version)
        )

    def answered(self, asked: str, answer: Any) -> None:
        self._sessions.setdefault(answer.session_id, f"S{len(self._sessions)}")
        rows = [f"  {row}" for row in self._rows(answer)]
        code = ErrorCode(answer.error_code).name
        self.lines += [f"{asked} -> {code} {self._sessions[answer.session_id]}", *rows]

    def _rows(self, answer: Any) -> Iterator[str]:
        names = {topic_id: name for name, topic_id in self._ids.items()}
        for topic in answer.responses:
            name = topic.topic or names[topic.topic_id]
            for row in topic.partitions:
                values = b" ".join(value or b"" for value in values_of(row)).decode()
                ends = f"{row.log_start_offset}..{row.high_watermark}"
                yield f"{name}-{row.partition_index} {ErrorCode(row.error_code).name} {ends} [{values}]"

    @staticmethod
    def _field(by_id: bool) -> str:
        return "topic_id" if by_id else "topic"

    def _named(self, name: str, by_id: bool) -> dict[str, Any]:
        return {"topic_id": self._ids[name]} if by_id else {"topic": name}


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def by_any(connect: Callable[[], WireClient], version: int) -> list[str]:
    """The part of the walk that is the same with names and with ids."""
    with ExitStack() as stack:
        client, other = stack.enter_context(connect()), stack.enter_context(connect())
        walk = Walk(client, version)
        foo, bar = f"foo-{version}", f"bar-{version}"
        walk.create(foo, 2)
        walk.create(bar)
        walk.produce(foo, b"a", b"b", partition=1)
        start: Offsets = {(foo, 0): 0, (ABSENT, 0): 0, (foo, 1): 0}
        walk.fetch("none", 0, start)
        # The offsets are those of the last request, so the same records come again.
        walk.fetch("S1", 1)
        walk.fetch("S1", 2, {(foo, 0): 1, (foo, 1): 2})
        walk.fetch("S1", 2)
        walk.fetch("S1", 4)
        walk.fetch("S9", 3)
        walk.fetch("S1", -2)
        walk.fetch("S1", 3, version=BY_ID if version == BY_NAME else BY_NAME)
        walk.fetch("S1", 3, {(bar, 0): 1}, forget={ABSENT: [0], foo: [7]})
        walk.fetch("S1", 4)
        _wait(walk, client, other, foo, version)
        # What had records is read last next time.
        for topic, partition in ((foo, 0), (bar, 0), (foo, 1)):
            walk.produce(topic, b"x", partition=partition)
        walk.fetch("S1", 10, max_bytes=1)
        walk.fetch("S1", 11, max_bytes=1)
        walk.fetch("S1", 12, max_bytes=1)
        walk.fetch("S1", 13)
        walk.fetch("S1", 14, {(foo, 0): 2, (foo, 1): 4, (bar, 0): 2})
        walk.delete_records(foo, 1)
        walk.fetch("S1", 15)
        walk.fetch("S1", 16)
        # Errors come each time, and once they are gone the partition comes again.
        walk.fetch("S1", 17, {(foo, 0): 77, (bar, 0): (2, 5)})
        walk.fetch("S1", 18)
        walk.fetch("S1", 19, {(foo, 0): 2, (bar, 0): (2, -1)})
        walk.fetch("S1", 20)
        walk.fetch("S1", 21, forget={foo: [0, 1], bar: [0]})
        walk.fetch("S1", 22)
        walk.fetch("none", 0)
        walk.fetch("S2", 1)
        walk.fetch("S2", 2)
        walk.fetch("none", 0, {(foo, 0): 1, (foo, 1): 0})
        walk.fetch("S3", 0, {(foo, 1): 3})
        walk.fetch("S3", 1)
        walk.fetch("S4", 1)
        walk.fetch("S4", -1, {(foo, 1): 3})
        walk.fetch("S4", 2)
        walk.fetch("none", -1)
        walk.fetch("none", 1)
        # A partition that is forgotten and added in one request is forgotten.
        walk.fetch("none", 0, {(foo, 0): 1, (bar, 0): 0})
        walk.fetch("S5", 1, {(foo, 0): 1}, forget={foo: [0]})
        walk.fetch("S5", 2)
        return walk.lines


def _wait(walk: Walk, client: WireClient, other: WireClient, foo: str, version: int) -> None:
    """Waits of a session: for records, until the end, and for a session that another connection uses meanwhile."""
    client.send(walk.request("S1", 5, max_wait_ms=10_000), version)
    assert produce(other, foo, b"new", partition=1).error_code == ErrorCode.NONE
    walk.answered("S1 5", client.receive())
    walk.fetch("S1", 6, {(foo, 1): 3}, max_wait_ms=50)
    client.send(walk.request("S1", 7, max_wait_ms=500), version)
    time.sleep(0.1)
    walk.answered("S1 8 meanwhile", other.ask(walk.request("S1", 8), version))
    walk.answered("S1 7", client.receive())
    walk.answered("S1 9", other.ask(walk.request("S1", 9), version))


def of_topics_that_go(connect: Callable[[], WireClient]) -> list[str]:
    """Topics that are deleted, and created again, while a session has them."""
    with connect() as client:
        named, with_ids = Walk(client, BY_NAME), Walk(client, BY_ID)
        for walk in (named, with_ids):
            walk.create("gone" if walk is named else "gone-id")
        named.fetch("none", 0, {("gone", 0): 0})
        with_ids.fetch("none", 0, {("gone-id", 0): 0})
        with_ids.fetch("S1", 1, {(ABSENT, 0): 0})
        named.delete("gone")
        with_ids.delete("gone-id")
        named.fetch("S1", 1)
        with_ids.fetch("S1", 2)
        old = with_ids._ids["gone-id"]
        named.create("gone")
        create_topic(client, "gone-id")
        until(lambda: produce(client, "gone-id", b"again").error_code == ErrorCode.NONE)
        assert with_ids._ids["gone-id"] == old
        named.fetch("S1", 2)
        with_ids.fetch("S1", 3)
        return [*named.lines, *with_ids.lines]


def walk_all(connect: Callable[[], WireClient]) -> list[str]:
    """The whole walk."""
    parts = {
        "by name": lambda: by_any(connect, BY_NAME),
        "by id": lambda: by_any(connect, BY_ID),
        "topics that go": lambda: of_topics_that_go(connect),
    }
    return [line for title, part in parts.items() for line in (f"# {title}", *part())]


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    print("\n".join(walk_all(lambda: WireClient((host, int(port))))))


if __name__ == "__main__":
    main()
