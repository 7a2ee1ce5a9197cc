"""Format strings for records, as in kcat: `%t %p %o %k %s`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.protocol.record_batch import Record
from kgctl.model.topic_partition import TopicPartition
from kgctl.render.program import BadFormat
from kgctl.render.records import RecordFormat

Field = Callable[[TopicPartition, Record], bytes]
# What each letter means; --help and docs show it.
MEANINGS = {
    "t": "topic",
    "p": "partition",
    "o": "offset",
    "k": "key",
    "K": "length of the key, -1 for null",
    "s": "value",
    "S": "length of the value, -1 for null",
    "h": "headers as name=value,...",
    "T": "timestamp in milliseconds since 1970, -1 for none",
    "%": "a percent sign",
}


def formatted(text: bytes, null: bytes) -> RecordFormat:
    """The format of a string whose escapes are replaced already. Raises BadFormat."""
    parts = _parts(text, null)

    def lines(partition: TopicPartition, records: Sequence[Record], log_append_time: bool) -> bytes:
        return b"".join(
            [part if isinstance(part, bytes) else part(partition, record) for record in records for part in parts]
        )

    return lines


def _parts(text: bytes, null: bytes) -> list[bytes | Field]:
    first, *rest = text.split(b"%")
    parts: list[bytes | Field] = [first] if first else []
    pieces = iter(rest)
    for piece in pieces:
        if not piece:
            # Two percent signs; what follows the second is text.
            after = next(pieces, None)
            if after is None:
                raise BadFormat("a single % at the end; write it as %%")
            parts.append(b"%" + after)
            continue
        letter = chr(piece[0])
        if letter not in MEANINGS:
            known = ", ".join(f"%{name}" for name in MEANINGS)
            raise BadFormat(f"%{letter} is not one of {known}")
        parts.append(_field(letter, null))
        if piece[1:]:
            parts.append(piece[1:])
    return parts


def _field(letter: str, null: bytes) -> Field:
    fields: dict[str, Field] = {
        "t": lambda partition, record: partition.topic.encode(),
        "p": lambda partition, record: b"%d" % partition.partition,
        "o": lambda partition, record: b"%d" % record.offset,
        "k": lambda partition, record: null if record.key is None else bytes(record.key),
        "K": lambda partition, record: b"%d" % (-1 if record.key is None else len(record.key)),
        "s": lambda partition, record: null if record.value is None else bytes(record.value),
        "S": lambda partition, record: b"%d" % (-1 if record.value is None else len(record.value)),
        "h": lambda partition, record: b",".join(
            name.encode() + b"=" + (null if content is None else bytes(content)) for name, content in record.headers
        ),
        "T": lambda partition, record: b"%d" % record.timestamp,
    }
    return fields[letter]
