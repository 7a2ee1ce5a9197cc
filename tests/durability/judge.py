"""The judge: reads everything that a broker serves, and compares it with the ledger of what was acknowledged."""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.record_batch import Record, batches, check_crc, decode_records
from broker.protocol.wire_types import DecodeError
from tests.durability.images import GROUPS, Ledger, Partition, as_stored, batch_of
from tests.harness.requests import fetch, list_offset
from tests.harness.wire_client import WireClient

Key = tuple[str, int]
DAMAGE_CODES = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR)
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
_TOLD = re.compile(r"lost offsets ([0-9 ,to]+?)(?: and (\d+) more ranges)? of (\S+)-(\d+)\b")


@dataclass
class Answers:
    """What a broker serves: whole batches of the ledger, errors that name damage, and everything that is wrong."""

    served: dict[Key, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Base offsets of batches with the acknowledged bytes."""
    errors: list[tuple[Key, int]] = field(default_factory=list)
    """Partition and offset of fetches that were refused because of damage."""
    refused: int = 0
    """Other requests that were refused because of damage."""
    starts: dict[Key, int] = field(default_factory=dict)
    ends: dict[Key, int] = field(default_factory=dict)
    missing_topics: set[str] = field(default_factory=set)
    returned_topics: set[str] = field(default_factory=set)
    """Topics that were deleted."""
    commits: dict[tuple[str, str, int], int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def offsets(self, key: Key, known: Partition, start: int | None = None) -> set[int]:
        """The acknowledged offsets from the log start on that are served."""
        start = known.log_start if start is None else start
        served = self.served[key]
        return {
            offset
            for batch in known.batches
            if batch.base_offset in served
            for offset, _ in batch.times
            if offset >= start
        }


def examine(client: WireClient, ledger: Ledger, random: Random) -> Answers:
    """Ask for everything in the ledger."""
    answers = Answers()
    found = {topic.name: topic for topic in client.ask(MetadataRequest(topics=None), 12).topics}
    for name, (_, topic_id) in ledger.topics.items():
        if name not in found:
            answers.missing_topics.add(name)
        elif found[name].topic_id != topic_id:
            answers.wrong.append(f"{name} has another topic id")
    answers.returned_topics = set(ledger.deleted) & set(found)
    for key, known in ledger.partitions.items():
        if key[0] in answers.missing_topics:
            continue
        read_partition(client, key, known, answers, random)
        look_up(client, key, known, answers, random)
    _fetch_offsets(client, answers)
    return answers


def read_partition(client: WireClient, key: Key, known: Partition, answers: Answers, random: Random) -> None:
    topic, partition = key
    row = list_offset(client, topic, LATEST, partition=partition)
    if row.error_code != ErrorCode.NONE:
        answers.wrong.append(f"{topic}-{partition}: its end is unknown, error {row.error_code}")
        return
    answers.ends[key] = end = row.offset
    answers.starts[key] = list_offset(client, topic, EARLIEST, partition=partition).offset
    contents = {batch.base_offset: batch.content for batch in known.batches}
    bases = sorted(contents)
    offset = answers.starts[key]
    while offset < end:
        limit = random.choice((1, 500, 5000, 1 << 20))
        row = fetch(client, topic, offset, partition=partition, partition_max_bytes=limit)
        content = bytes(row.records or b"")
        if row.error_code in DAMAGE_CODES:
            answers.errors.append((key, offset))
            after = bisect.bisect_right(bases, offset)
            offset = bases[after] if after < len(bases) else end
            continue
        if row.error_code != ErrorCode.NONE or not content:
            answers.wrong.append(
                f"{topic}-{partition} stops silently at offset {offset} of {end}: error {row.error_code}, {len(content)} bytes"
            )
            return
        reached = offset
        try:
            headers = list(batches(content))
        except DecodeError as error:
            answers.wrong.append(f"{topic}-{partition}: undecodable batches at offset {offset}: {error}")
            return
        for position, header in headers:
            batch = content[position : position + header.size_bytes]
            if not check_crc(content, position, header):
                answers.wrong.append(f"{topic}-{partition}: a batch with a bad CRC at offset {header.base_offset}")
            # Compaction leaves gaps where it removes whole segments.
            skipped = bisect.bisect_left(bases, header.base_offset) > bisect.bisect_left(bases, reached)
            if skipped or header.next_offset <= offset:
                answers.wrong.append(
                    f"{topic}-{partition}: offset {header.base_offset} follows {reached} without an error"
                )
            if known.unanswered is not None and batch == as_stored(known.unanswered, known.end):
                # It is there: from now on it has to stay.
                known.batches.append(batch_of(batch))
                known.unanswered = None
                contents[header.base_offset] = batch
                bases.append(header.base_offset)
            if contents.get(header.base_offset) == batch:
                answers.served[key].add(header.base_offset)
            elif header.record_count:
                answers.wrong.append(f"{topic}-{partition}: unknown records at offset {header.base_offset}")
            reached = header.next_offset
        offset = max(reached, offset + 1)


def read_records(client: WireClient, key: Key, known: Partition) -> tuple[dict[int, Record], set[int]]:
    """All records by offset, whatever their batches, and the offsets of the acknowledged batches that are refused."""
    topic, partition = key
    found: dict[int, Record] = {}
    refused: set[int] = set()
    offset = known.log_start
    while offset < known.end:
        row = fetch(client, topic, offset, partition=partition)
        content = bytes(row.records or b"")
        if row.error_code in DAMAGE_CODES:
            batch = next(batch for batch in known.batches if batch.last_offset >= offset)
            refused.update(range(offset, batch.last_offset + 1))
            offset = batch.last_offset + 1
            continue
        assert row.error_code == ErrorCode.NONE, f"Fetch of {topic}-{partition} at {offset}: error {row.error_code}"
        assert content, f"{topic}-{partition} stops silently at offset {offset}"
        for position, header in batches(content):
            assert check_crc(content, position, header), f"{topic}-{partition}: a bad CRC at {header.base_offset}"
            found.update({r.offset: r for r in decode_records(content, position) if r.offset >= known.log_start})
            offset = header.next_offset
    return found, refused


def look_up(client: WireClient, key: Key, known: Partition, answers: Answers, random: Random) -> None:
    """Offsets by time: exact, or an error. Records that are lost do not count."""
    topic, partition = key
    served = answers.offsets(key, known, answers.starts.get(key))
    stamps = [(o, t) for batch in known.batches for o, t in batch.times if o in served]
    broken = {offset for (damaged, offset) in answers.errors if damaged == key}
    if not stamps:
        return
    asked = [random.choice(stamps)[1] + random.choice((-1, 0, 1)) for _ in range(3)] + [MAX_TIMESTAMP]
    for timestamp in asked:
        row = list_offset(client, topic, timestamp, partition=partition)
        if row.error_code in DAMAGE_CODES:
            answers.refused += 1
            continue
        if timestamp == MAX_TIMESTAMP:
            newest = max(t for _, t in stamps)
            expected = next((o, t) for o, t in stamps if t == newest)
        else:
            expected = next(((o, t) for o, t in stamps if t >= timestamp), (-1, -1))
        if (row.offset, row.timestamp) != expected or row.error_code:
            what = (
                f"ListOffsets of {topic}-{partition} at {timestamp}: {row.offset, row.timestamp}, expected {expected}"
            )
            answers.wrong.append(what + (f" (damaged at {sorted(broken)})" if broken else ""))


def _fetch_offsets(client: WireClient, answers: Answers) -> None:
    for group in GROUPS:
        asked = [OffsetFetchRequest.Group(group_id=group, topics=None)]
        (found,) = client.ask(OffsetFetchRequest(groups=asked)).groups
        if found.error_code:
            answers.refused += 1
            continue
        for topic in found.topics:
            for row in topic.partitions:
                answers.commits[group, topic.name, row.partition_index] = row.committed_offset


def readable_batches(files: dict[str, bytes], topic_id: bytes, partition: int, known: Partition) -> set[int]:
    """Base offsets of the acknowledged batches before the first damaged one of their file."""
    found: set[int] = set()
    batches_at = {batch.base_offset: batch for batch in known.batches}
    for name, content in files.items():
        if not (name.startswith(f"segments/{topic_id.hex()}/{partition}/") and name.endswith(".log")):
            continue
        offset, position = int(Path(name).name.partition(".")[0]), 0
        while (batch := batches_at.get(offset)) is not None and content.startswith(batch.content, position):
            found.add(offset)
            offset, position = batch.last_offset + 1, position + len(batch.content)
    return found


# -- what a broker tells


def told(lines: list[str]) -> tuple[dict[Key, set[int]], bool]:
    """The lost offsets that log lines name, and whether they name all of them (a long list is cut)."""
    found: dict[Key, set[int]] = defaultdict(set)
    complete = True
    for line in lines:
        for ranges, more, topic, partition in _TOLD.findall(line):
            found[topic, int(partition)] |= spelled(ranges)
            complete = complete and not more
    return found, complete


def spelled(ranges: str) -> set[int]:
    """The offsets of a list like `3, 7 to 9`."""
    found: set[int] = set()
    for text in ranges.split(","):
        first, _, last = text.strip().partition(" to ")
        found.update(range(int(first), int(last or first) + 1))
    return found


def losses(log: str) -> list[str]:
    return [line.partition("loss accepted: ")[2] for line in log.splitlines() if "loss accepted: " in line]


def segment_files(directory: Path) -> dict[str, bytes]:
    """The content of all segment files, those set aside included, by path relative to the directory."""
    root = directory / "segments"
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in (root.rglob("*") if root.exists() else ())
        if path.is_file() and ".log" in path.name
    }


def whole_batches(files: dict[str, bytes], topic_id: bytes, partition: int, known: Partition) -> set[int]:
    """Base offsets of the acknowledged batches whose bytes are in a file of their partition."""
    contents = [
        content
        for name, content in files.items()
        if name.startswith(f"segments/{topic_id.hex()}/{partition}/") and name.endswith(".log")
    ]
    return {
        batch.base_offset
        for batch in known.batches
        if batch.last_offset >= known.log_start and any(batch.content in content for content in contents)
    }
