"""Parses what people give for a reset: topics, strategies with their values, files of offsets."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from kgctl.client.admin.reset_targets import Target
from kgctl.client.admin.times import duration_ms, moment_ms
from kgctl.client.net.errors import BadValue, NotFound
from kgctl.model.topic_partition import TopicPartition

Strategy: TypeAlias = Literal[
    "to-earliest",
    "to-latest",
    "to-current",
    "to-offset",
    "shift-by",
    "by-duration",
    "to-datetime",
    "to-group",
    "from-file",
]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
# More digits than an offset has; int() refuses thousands of them.
_NUMBER = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_PARTITIONS = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?", re.ASCII)
MOST_PARTITIONS = 100_000
_LATEST_MS = (1 << 63) - 1


def topic_partitions(text: str) -> tuple[str, tuple[int, ...] | None]:
    """`TOPIC`, `TOPIC:0,2` or `TOPIC:0-5,8` as a name and the partitions, None for all. Raises BadValue."""
    name, colon, numbers = text.partition(":")
    if not colon:
        return name, None
    ranges = [_PARTITIONS.fullmatch(part) for part in numbers.split(",")]
    found: set[int] = set()
    for one in ranges:
        if not name or one is None:
            raise BadValue(f"{text!r} is not TOPIC or TOPIC:P,...")
        first, last = int(one[1]), int(one[2] or one[1])
        if first > last:
            raise BadValue(f"{text!r}: the range {one[0]} ends before it begins")
        if len(found) + last - first >= MOST_PARTITIONS:
            raise BadValue(f"{text!r} names more than {MOST_PARTITIONS} partitions")
        found.update(range(first, last + 1))
    return name, tuple(sorted(found))


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
        return Target("timestamp", _logged(moment_ms(text, now_ms)))
    if strategy == "to-group":
        return Target("group", source=text)
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
    plans = _plans_in(text, path, unnamed=group)
    if group not in plans:
        raise no_plan(group, path, others=bool(plans))
    return plans[group]


def offsets_by_group(text: str, path: str) -> dict[str, dict[TopicPartition, int]]:
    """The same of each group in a file, in which each line names its group."""
    return _plans_in(text, path, unnamed=None)


def no_plan(group: str, path: str, *, others: bool) -> NotFound:
    where = f"; {path} is about other groups." if others else f" in {path}."
    return NotFound(f"No reset plan for group {group} found{where}")


def _plans_in(text: str, path: str, unnamed: str | None) -> dict[str, dict[TopicPartition, int]]:
    """The offsets of each group. Lines without a group are about the group `unnamed`."""
    plans: dict[str, dict[TopicPartition, int]] = {}
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
        if not names and unnamed is None:
            raise BadValue(f"{path}, line {number}: name the group: group,topic,partition,offset")
        plan = plans.setdefault(names[0] if names else unnamed or "", {})
        if key in plan:
            raise BadValue(f"{path}, line {number}: {key} has an offset already")
        plan[key] = value
    return plans


def _fields(text: str, path: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(text.splitlines())
    except csv.Error as error:
        raise BadValue(f"Cannot read {path}: {error}.") from None


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadValue(f"{text!r} is not a whole number.")
    return int(text)
