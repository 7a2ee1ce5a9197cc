"""The records of __consumer_offsets in the form of the recordings: [kind, group, what it is about, value].

The kind is the version of the key: 1 an offset, 2 a classic group, 3-8 and 16 what belongs to a consumer group.
"""

from __future__ import annotations

import itertools
from typing import Any

from broker.protocol.newer_group_records import (
    GROUP_METADATA,
    MEMBER,
    REGULAR_EXPRESSION,
    ExpressionKey,
    MemberKey,
    decode_newer_key,
    decode_newer_value,
    kind_of,
)
from broker.protocol.offsets_topic import OffsetCommitKey, decode_group_value, decode_key, decode_offset_value
from broker.protocol.record_batch import batches, decode_records
from tests.harness.oracle.consumer import forms
from tests.harness.oracle.consumer.files import State, Step
from tests.harness.oracle.consumer.names import Names

OFFSET, CLASSIC, EXPRESSION = 1, 2, REGULAR_EXPRESSION
PENDING = "pending"


def read_log(data: Any, names: Names) -> tuple[list[Any], int]:
    """The records of the walk's groups in a part of the log, and the offset behind them (-1: nothing read)."""
    out, end = [], -1
    for position, header in batches(bytes(data or b""), partial_tail=True):
        end = header.next_offset
        if header.is_control:
            continue
        for one in decode_records(data, position):
            found = record(one.key, one.value, names)
            if found is not None:
                out.append([*found, PENDING] if header.is_transactional else found)
    return out, end


def record(key: bytes | None, value: bytes | None, names: Names) -> list[Any] | None:
    """None for a record of other groups."""
    if key is None:
        return None
    known = decode_key(key)
    if isinstance(known, OffsetCommitKey):
        stored = decode_offset_value(value) if value else None
        return _entry(OFFSET, known.group, f"{names.text(known.topic)}-{known.partition}", stored, names)
    if known is not None:
        return _entry(CLASSIC, known.group, "", decode_group_value(value) if value else None, names)
    found = decode_newer_key(key)
    if found is None:
        return None
    newer: Any = found[1]
    if newer.group not in names.symbol:
        return None
    about = ""
    if isinstance(newer, MemberKey):
        about = names.member(newer.member_id)
    elif isinstance(newer, ExpressionKey):
        about = names.text(newer.regular_expression)
    content = None if value is None else _newer_value(key, value, names)
    return [kind_of(key), names.text(newer.group), about, content]


def _entry(kind: int, group: str, about: str, stored: Any, names: Names) -> list[Any] | None:
    if group not in names.symbol:
        return None
    return [kind, names.text(group), about, None if stored is None else forms.recorded(stored, 3, names)]


def _newer_value(key: bytes, value: bytes, names: Names) -> Any:
    message: Any = decode_newer_value(key, value)
    shown = forms.recorded(message, 0, names)
    kind = kind_of(key)
    if kind == GROUP_METADATA:
        # Made of the ids and partitions of the topics.
        shown["metadata_hash"] = "set" if message.metadata_hash else "none"
    elif kind == REGULAR_EXPRESSION:
        shown = {"topic_names": shown["topics"], "timestamp": shown["timestamp"]}
    elif kind == MEMBER:
        classic = message.classic_member
        shown.pop("classic_member", None)
        shown["classic"] = None if classic is None else forms.recorded(classic, 0, names)
    return shown


def of_committed(step: Step, before: State) -> list[Any]:
    """The records of a step without tombstones of pending offsets, which our log does not have."""
    if step["api"] != "DeleteGroups":
        return list(step["records"])
    return [
        one
        for one in step["records"]
        if one[0] != OFFSET or one[1] not in before or one[2] in before[one[1]].get("offsets", {})
    ]


def in_runs(records: list[Any]) -> list[Any]:
    """The records by group, with each run of one kind in order.

    Groups may be in different partitions, and Kafka writes the members of an assignment in the order of a hash table.
    """
    out: list[Any] = []
    for _, run in itertools.groupby(sorted(records, key=_group_of), lambda one: one[:2]):
        out += forms.in_order(list(run))
    return out


def _group_of(one: list[Any]) -> str:
    return str(one[1])
