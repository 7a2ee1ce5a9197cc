"""Requests and responses in the form of the recordings, and back."""

from __future__ import annotations

import json
from typing import Any

from broker.protocol.wire_types import ARRAY, BYTES, UUID, Message, Struct, StructMeta
from tests.harness.oracle import replay, requests
from tests.harness.oracle.consumer import embedded
from tests.harness.oracle.consumer.names import Names

BY_NAME = requests.BY_NAME
NOT_RECORDED = {"throttle_time_ms", "client_host", "configs", "topic_config_error_code"}
# Explanations: compared only in whether there is one.
TEXTS = {"error_message"}
MEMBER_IDS = {"member_id", "leader"}
TIMES = {"commit_timestamp", "current_state_timestamp", "timestamp"}
KEPT_IN_ORDER = {"protocols", "supported_protocols", "records"}
NOW = "now"

# ---- requests


def complete(api: str, version: int, fields: dict[str, Any]) -> dict[str, Any]:
    return requests.complete(api, version, fields)


def build(cls: StructMeta, fields: dict[str, Any], names: Names) -> Any:
    """The message with these fields, whose texts hold the values of this broker and whose ids are symbols."""
    types = {declared.name: declared.type for declared in cls.FIELDS}
    return cls(**{name: _built(types[name], value, names) for name, value in fields.items()})


def _built(wire_type: Any, value: Any, names: Names) -> Any:
    if value is None:
        return None
    if isinstance(wire_type, ARRAY) and isinstance(wire_type.element, StructMeta):
        return [build(wire_type.element, item, names) for item in value]
    if isinstance(wire_type, ARRAY):
        return [_built(wire_type.element, item, names) for item in value]
    if isinstance(wire_type, StructMeta):
        return build(wire_type, value, names)
    if wire_type is UUID:
        return names.id_of(value)
    if wire_type is BYTES:
        return embedded.encoded(value, names)
    return names.living(value)


# ---- responses


def recorded(message: Message, version: int, names: Names) -> Any:
    return _plain(message, version, names)


def _plain(value: Any, version: int, names: Names, name: str = "") -> Any:
    if isinstance(value, Struct):
        return _fields(value, version, names)
    if isinstance(value, list):
        items = [_plain(item, version, names, name) for item in value]
        return items if name in KEPT_IN_ORDER else in_order(items)
    if isinstance(value, bytes):
        return embedded.read(name, value, names)
    if isinstance(value, bool) or value is None:
        return value
    if name == "authorized_operations":
        return None if value == replay.NO_OPERATIONS else [bit for bit in range(31) if value >> bit & 1]
    if isinstance(value, int):
        return NOW if name in TIMES and value > 0 else names.producer(value) if name == "producer_id" else value
    return names.member(value) if name in MEMBER_IDS else names.text(value)


def _fields(struct: Struct, version: int, names: Names) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field in type(struct).FIELDS:
        if not field.is_in(version) or field.name in NOT_RECORDED:
            continue
        value = getattr(struct, field.name)
        if field.tag is not None and value == field.default:
            continue
        out[field.name] = names.topic_id(value) if field.type is UUID else _plain(value, version, names, field.name)
    if "node_id" in out:
        out |= {key: place for key, place in replay.PLACE_OF.items() if out.get(key) not in (-1, "", None)}
    return out


def in_order(items: list[Any]) -> list[Any]:
    """Kafka orders lists by hash tables."""
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


def of_walk(message: Message, names: Names) -> Message:
    """The message without the groups of other walks."""
    if type(message).__name__ == "ListGroupsResponse":
        message.groups = [one for one in message.groups if one.group_id in names.symbol]  # type: ignore[attr-defined]
    return message


def codes(response: Any) -> set[int]:
    """All error codes in a response."""
    if isinstance(response, list):
        return {code for one in response for code in codes(one)}
    if not isinstance(response, dict):
        return set()
    own = {code for key in ("error_code", "partition_error_code") if (code := response.get(key)) is not None}
    return own.union(*map(codes, response.values()))


def is_alike(want: Any, got: Any, name: str = "") -> bool:
    """Whether two answers are the same, whatever the words of their explanations."""
    if isinstance(want, dict) and isinstance(got, dict):
        return want.keys() == got.keys() and all(is_alike(want[key], got[key], key) for key in want)
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(map(is_alike, want, got))
    if name in TEXTS:
        return bool(want) == bool(got)
    return bool(want == got)
