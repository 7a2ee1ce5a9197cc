"""The account: compares what was acknowledged to clients with what the broker returns after each restart."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.list_offsets import ListOffsetsRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.record_batch import batches, check_crc, decode_records
from tests.durability.generations import Generations
from tests.durability.load import GROUP, PARTITIONS, SIMPLE_GROUP, TOPIC, Load
from tests.harness.wire_client import WireClient

# How many records that were read before are read again after each restart, and must be equal.
OVERLAP = 300
FETCH_BYTES = 1 << 20
Record = tuple[str, int]
"""Name of the producer, and number."""


class Account:
    """Everything that was acknowledged and everything that was read. A broken promise raises AssertionError."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self.records: list[list[Record]] = [[] for _ in range(PARTITIONS)]
        self.high_watermarks = [0] * PARTITIONS
        self.generations = Generations()
        self.acknowledged: Counter[str] = Counter()
        self.repeated = 0  # duplicate records of the plain producer
        self._numbers: Counter[tuple[str, int]] = Counter()  # the next new number, by producer and partition
        self._acks: list[tuple[str, int, int, int]] = []  # not yet found in the log
        self._tried, self._committed = 0, 0  # by the simple consumer
        self.group_commits = [0] * PARTITIONS
        self._received: dict[int, set[int]] = defaultdict(set)

    # -- what clients were values

    def read_journals(self) -> None:
        for name, producer in self._load.producers.items():
            for event, *values in producer.journal.new():
                assert event != "failed", f"the {name} producer gave up: {values}"
                if event == "acked":
                    partition, number, offset = values
                    self._acks.append((name, partition, number, offset))
                    self.acknowledged[name] += 1
        for event, number, *_ in self._load.committer.journal.new():
            self.acknowledged["commits failed"] += event == "failed"
            if event == "tried":
                self._tried = number
            elif event == "acked":
                self._committed = number
                self.acknowledged["commits"] += 1
        for member in self._load.members:
            for event, *values in member.journal.new():
                self._read_member(event, values)

    def _read_member(self, event: str, values: list[Any]) -> None:
        match event:
            case "joined":
                self.generations.learn(values[0], values[1], values[2])
            case "received":
                self._received[values[0]].update(range(values[1], values[2] + 1))
            case "acked":
                self.acknowledged["group commits"] += 1
                self.group_commits[values[0]] = max(self.group_commits[values[0]], values[1])
            case "failed":
                self.acknowledged["group commits failed"] += 1

    # -- what the broker returns

    def describe(self, client: WireClient) -> str:
        """Describe the group and check its generation. Returns its state."""
        (group,) = client.ask(DescribeGroupDetailsRequest(groups=[GROUP])).groups
        members = frozenset(member.member_id for member in group.members)
        if group.generation_id >= 0 or self.generations.newest:
            self.generations.describe(group.generation_id, group.group_state, group.leader, members)
        return str(group.group_state)

    def watch_ends(self, client: WireClient) -> None:
        """Check that no high watermark decreases."""
        asked = [ListOffsetsRequest.Partition(partition_index=p, timestamp=-1) for p in range(PARTITIONS)]
        (topic,) = client.ask(
            ListOffsetsRequest(topics=[ListOffsetsRequest.Topic(name=TOPIC, partitions=asked)])
        ).topics
        for found in topic.partitions:
            before = self.high_watermarks[found.partition_index]
            assert found.error_code == ErrorCode.NONE, f"ListOffsets: {found}"
            assert found.offset >= before, (
                f"the high watermark of {found.partition_index} fell from {before} to {found.offset}"
            )
            self.high_watermarks[found.partition_index] = found.offset

    def check(self, client: WireClient) -> None:
        """Check that everything acknowledged so far is present and unchanged."""
        self.read_journals()
        # Commits first: the next commit of the same committer would hide a lost one.
        self._check_commits(client, self._committed)
        self._check_group_commits(client, list(self.group_commits))
        acks, self._acks = self._acks, []
        self.watch_ends(client)
        for partition in range(PARTITIONS):
            self.read_records(client, partition, max(0, len(self.records[partition]) - OVERLAP))
        for name, partition, number, offset in acks:
            records = self.records[partition]
            found = records[offset] if offset < len(records) else None
            assert found == (name, number), (
                f"acknowledged record {number} of the {name} producer is not at {TOPIC}-{partition} offset {offset}: {found}"
            )

    def read_records(self, client: WireClient, partition: int, start: int) -> None:
        """Read from `start` to the high watermark. Known records must be equal; new ones must follow in order."""
        offset = start
        while offset < self.high_watermarks[partition]:
            part = FetchRequest.Partition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
            asked = [FetchRequest.Topic(topic=TOPIC, partitions=[part])]
            (topic,) = client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=asked), 12).responses
            (found,) = topic.partitions
            content = bytes(found.records or b"")
            assert found.error_code == ErrorCode.NONE, (
                f"Fetch of {TOPIC}-{partition} at {offset}: error {found.error_code}"
            )
            assert content, f"{TOPIC}-{partition} ends at {offset}, its high watermark is {found.high_watermark}"
            for position, header in batches(content):
                assert check_crc(content, position, header), f"{TOPIC}-{partition}: a bad batch at {header.base_offset}"
                for record in decode_records(content, position):
                    if record.offset >= offset:
                        assert record.offset == offset, f"{TOPIC}-{partition} has no offset {offset}"
                        self._add(partition, offset, (record.value or b"").decode())
                        offset += 1

    def _add(self, partition: int, offset: int, value: str) -> None:
        name, _, text = value.partition(" ")
        record, known = (name, int(text)), self.records[partition]
        if offset < len(known):
            assert known[offset] == record, f"{TOPIC}-{partition} offset {offset} was {known[offset]} and is {record}"
            return
        known.append(record)
        expected = self._numbers[name, partition]
        if record[1] < expected:
            assert name == "plain", f"{value!r} is in {TOPIC}-{partition} twice, again at {offset}"
            self.repeated += 1
            return
        assert record[1] == expected, f"{TOPIC}-{partition} offset {offset} is {value!r}, expected number {expected}"
        self._numbers[name, partition] = expected + 1

    def _check_commits(self, client: WireClient, acknowledged: int) -> None:
        found = fetch_offsets(client, SIMPLE_GROUP)
        self.read_journals()
        if not found and not acknowledged:
            return
        numbers = {offset for offset, _ in found.values()}
        assert len(found) == PARTITIONS, f"offsets of {SIMPLE_GROUP}: {found}"
        assert len(numbers) == 1, f"the offsets of one request come from different commits: {found}"
        (number,) = numbers
        assert acknowledged <= number <= self._tried, (
            f"commit {acknowledged} of {SIMPLE_GROUP} was acknowledged, {self._tried} tried, {number} is stored"
        )
        # The Python binding includes the terminating zero of the C string in the metadata.
        assert all(metadata.rstrip("\0") == str(number) for _, metadata in found.values()), f"torn commits: {found}"

    def _check_group_commits(self, client: WireClient, acknowledged: list[int]) -> None:
        found = fetch_offsets(client, GROUP)
        self.watch_ends(client)
        for partition, offset in enumerate(acknowledged):
            stored = found.get(partition, (0, ""))[0]
            assert offset <= stored <= self.high_watermarks[partition], (
                f"offset {offset} of {TOPIC}-{partition} was committed by {GROUP}, {stored} is stored,"
                f" the log ends at {self.high_watermarks[partition]}"
            )

    # -- the end

    def check_received(self) -> None:
        """Check that members received every record up to the committed offsets."""
        for partition, offset in enumerate(self.group_commits):
            missing = set(range(offset)) - self._received[partition]
            assert not missing, (
                f"{len(missing)} records of {TOPIC}-{partition} never reached a member, first {min(missing)}"
            )

    @property
    def is_consumed(self) -> bool:
        return self.group_commits == self.high_watermarks


def fetch_offsets(client: WireClient, group: str) -> dict[int, tuple[int, str]]:
    """Offset and metadata by partition."""
    asked = [OffsetFetchRequest.Group(group_id=group, topics=None)]
    (found,) = client.ask(OffsetFetchRequest(groups=asked)).groups
    assert found.error_code == ErrorCode.NONE, f"OffsetFetch of {group}: error {found.error_code}"
    return {
        p.partition_index: (p.committed_offset, p.metadata or "")
        for topic in found.topics
        for p in topic.partitions
        if topic.name == TOPIC
    }
