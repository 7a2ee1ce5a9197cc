"""Parses what people give for a reset: topics, strategies with their values, files of offsets."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from kgctl.client.admin.reset import Target
from kgctl.client.admin.times import duration_ms, time_ms
from kgctl.client.net.errors import BadValue, NotFound
from kgctl.model.topic_partition import TopicPartition

Strategy: TypeAlias = Literal[
    "to-earliest", "to-latest", "to-current", "to-offset", "shift-by", "by-duration", "to-datetime", "from-file"
]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
# More digits than an offset has; int() refuses thousands of them.
_NUMBER = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_PARTITION = re.compile(r"\d{1,10}", re.ASCII)
_LATEST_MS = (1 << 63) - 1


def topic_partitions(text: str) -> tuple[str, tuple[int, ...] | None]:
    """`TOPIC` or `TOPIC:P,...` as a name and the partitions, None for all. Raises BadValue."""
    name, colon, numbers = text.partition(":")
    if not colon:
        return name, None
    parts = numbers.split(",")
    if not name or not all(_PARTITION.fullmatch(part) for part in parts):
        raise BadValue(f"{text!r} is not TOPIC or TOPIC:P,...")
    return name, tuple(int(part) for part in parts)


def target_of(group: str, strategy: Strategy, text: str, now_ms: int) -> Target:
    """The target of a strategy and its value at `now_ms` (since 1970); reads a file. Raises BadValue or NotFound."""
    if strategy == "to-earliest":
        return Target("earliest")
    if strategy == "to-latest":
        return Target("latest")
    if strategy == "to-current":
        return Target("current")
    if strategy == "to-offset":
        return Target("offset", _number(text))
    if strategy == "shift-by":
        return Target("shift", _number(text))
    if strategy == "by-duration":
        return Target("timestamp", _logged(now_ms - duration_ms(text)))
    if strategy == "to-datetime":
        return Target("timestamp", _logged(time_ms(text)))
    return Target("file", offsets=offsets_in(group, decoded(Path(text).read_bytes, text), text))


def _logged(ms: int) -> int:
    """The time, or the nearest one that a record can have: ListOffsets has other meanings for times below 0."""
    return min(max(ms, 0), _LATEST_MS)


def decoded(read: Callable[[], bytes], name: str) -> str:
    """A whole file as text; spreadsheets write a byte order mark. Raises BadValue if it cannot be read."""
    try:
        return read().decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except ValueError as error:
        reason = str(error)
    raise BadValue(f"Cannot read {name}: {reason}.")


def offsets_in(group: str, text: str, path: str) -> dict[TopicPartition, int]:
    """`topic,partition,offset` or `group,topic,partition,offset` lines without a header, as Kafka's tool writes them.

    Raises BadValue with the number of a bad line, NotFound if no line is about the group. `path` is for error messages.
    """
    plan: dict[TopicPartition, int] = {}
    others = False
    for number, fields in enumerate(_fields(text, path), 1):
        if not fields:
            continue
        try:
            *names, topic, partition, offset = fields
            key, value = TopicPartition(topic, int(partition)), int(offset)
            if len(names) > 1 or key.partition < 0 or value < 0:
                raise ValueError
        except ValueError:
            raise BadValue(f"{path}, line {number}: not [group,]topic,partition,offset") from None
        if names and names[0] != group:
            others = True
            continue
        if key in plan:
            raise BadValue(f"{path}, line {number}: {key} has an offset already")
        plan[key] = value
    if not plan:
        raise NotFound(
            f"No reset plan for group {group} found"
            + (f"; {path} is about other groups." if others else f" in {path}.")
        )
    return plan


def _fields(text: str, path: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(text.splitlines())
    except csv.Error as error:
        raise BadValue(f"Cannot read {path}: {error}.") from None


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadValue(f"{text!r} is not a whole number.")
    return int(text)
