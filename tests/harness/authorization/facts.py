"""What an answer says about authorization, in a form that is the same on every cluster.

A refused row counts with all its fields. Of other rows only their identity and error code count: what they report is the
subject of other tests.
"""

from __future__ import annotations

from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.wire_types import Struct
from tests.harness.authorization.cases import World

REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
IDENTITIES = {
    "name",
    "topic",
    "user",
    "entity_name",
    "topic_id",
    "group_id",
    "key",
    "resource_type",
    "resource_name",
    "index",
    "partition",
    "partition_index",
    "transactional_id",
}
ALWAYS = {"error_code", "topic_config_error_code", "topic_authorized_operations", "cluster_authorized_operations"}
ALWAYS |= {"authorized_operations", "partition_error_code"}
# Lists of what a row contains, which say nothing about who may see it.
CONTENTS = {"brokers", "configs", "members", "api_keys", "record_errors", "aborted_transactions"}
CONTENTS |= {"active_producers"}
# Kafka's messages end so, except some that print the request as a Java object.
FAILED = "uthorization failed."


def facts(answer: Struct, world: World) -> Any:
    """Nested lists and dictionaries; fields with their default are left out."""
    names = {topic_id: f"id of {name}" for name, topic_id in world.topic_ids.items()}
    return _facts(answer, {**names, b"\1" * 16: "unknown id"})


def _facts(struct: Struct, ids: dict[bytes, str]) -> dict[str, Any]:
    code = getattr(struct, "error_code", None) or getattr(struct, "partition_error_code", ErrorCode.NONE)
    is_refused = code in REFUSALS
    found: dict[str, Any] = {}
    for field in type(struct).FIELDS:
        name, value = field.name, getattr(struct, field.name)
        if name == "throttle_time_ms" or value is None:
            continue
        if isinstance(value, list) and (not value or isinstance(value[0], Struct)):
            if value and (is_refused or name not in CONTENTS):
                found[name] = sorted((_facts(entry, ids) for entry in value if not _is_internal(entry)), key=repr)
        elif isinstance(value, Struct):
            found.update({name: inner} if (inner := _facts(value, ids)) else {})
        elif is_refused or name in ALWAYS or name in IDENTITIES:
            if name == "topic_id":
                value = ids.get(value)
            elif name == "error_message" and value and not value.endswith(FAILED):
                value = "a message"
            if value not in (None, field.default, b"", ""):
                found[name] = _plain(value)
    return found


def _is_internal(row: Struct) -> bool:
    name = getattr(row, "name", None)
    return name is not None and name.startswith("__")


def _plain(value: Any) -> Any:
    if isinstance(value, memoryview | bytes):
        return bytes(value).decode("latin-1")
    return value
