"""Requests and responses in the form of the recordings, and back."""

from __future__ import annotations

import json
from typing import Any

from broker.protocol.api_keys import APIS
from broker.protocol.messages.list_transactions import ListTransactionsResponse
from broker.protocol.offsets_topic import TOPIC as OFFSETS_TOPIC
from broker.protocol.record_batch import Record, batches, build_batch, decode_records
from broker.protocol.wire_types import ARRAY, BYTES, RECORDS, UUID, ZERO_UUID, Message, Struct, StructMeta
from tests.harness.oracle import requests
from tests.harness.oracle.transactions.names import BOGUS_PRODUCER, Names

BY_NAME = {api.name: api for api in APIS.values()}
# Texts have other words here; leader epochs depend on restarts, which move no leader here.
NOT_RECORDED = {
    *("throttle_time_ms", "client_host", "error_message", "batch_index_error_message", "leader_epoch"),
    *("current_leader", "node_endpoints", "session_id"),
}
PLACE_OF = {"node_id": "NODE", "host": "HOST", "port": "PORT"}
PRODUCER_IDS = {"producer_id"}
TIMES = {"timestamp", "last_timestamp", "transaction_start_time_ms", "log_append_time_ms"}
BATCH = {"pid": -1, "epoch": -1, "seq": -1, "n": 1, "tx": False, "control": False}

# ---- requests


def complete(api: str, version: int, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that a request of this version can carry, with defaults for those not given, as text and numbers."""
    return dict(_as_text(requests.complete(api, version, fields)))


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def build(cls: StructMeta, fields: dict[str, Any], names: Names) -> Any:
    """The message with these fields, which hold the values of this broker."""
    types = {declared.name: declared.type for declared in cls.FIELDS}
    return cls(**{name: _built(types[name], value, names) for name, value in fields.items()})


def _built(wire_type: Any, value: Any, names: Names) -> Any:
    if value is None:
        return None
    if isinstance(wire_type, ARRAY) and isinstance(wire_type.element, StructMeta):
        return [build(wire_type.element, item, names) for item in value]
    if wire_type is RECORDS:
        return b"".join(batch_bytes(one, names) for one in value)
    return value.encode("latin-1") if wire_type in (BYTES, UUID) and isinstance(value, str) else value


def batch_bytes(batch: dict[str, Any], names: Names) -> bytes:
    """A batch from its short form; record i has the value v<text>.<i> and a time that follows from `at`."""
    batch = BATCH | batch
    first_ms = names.started_ms + 1000 * batch["at"]
    if batch["control"]:
        marker = Record(0, first_ms, b"\0\0\0\x01", b"\0\0\0\0\0\0")
        records = [marker]
    else:
        records = [
            Record(number, first_ms + number, None, f"v{batch['at']}.{number}".encode()) for number in range(batch["n"])
        ]
    return build_batch(
        records,
        base_offset=0,
        producer_id=batch["pid"],
        producer_epoch=batch["epoch"],
        base_sequence=batch["seq"],
        is_transactional=batch["tx"],
        is_control=batch["control"],
    )


# ---- responses


def recorded(message: Message, version: int, names: Names) -> Any:
    return _plain(message, version, names)


def of_walk(message: Message, names: Names) -> Message:
    """The message without the transactions of other walks."""
    if isinstance(message, ListTransactionsResponse):
        message.transaction_states = [one for one in message.transaction_states if one.transactional_id in names.symbol]
    return message


def _plain(value: Any, version: int, names: Names, name: str = "", of_offsets: bool = False) -> Any:
    if isinstance(value, Struct):
        return _fields(value, version, names)
    if isinstance(value, list):
        items = [_plain(item, version, names, name, of_offsets) for item in value]
        return items if name in ("protocols",) else in_order(items)
    if name == "records":
        return read_batches(value, names)
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        if name in PRODUCER_IDS:
            return names.producer(value)
        if name in TIMES:
            return names.time(value)
        return names.offsets_partition(value) if of_offsets and name in ("partitions", "partition_index") else value
    return names.member(value) if name in ("member_id", "leader") else names.text(value)


def _fields(struct: Struct, version: int, names: Names) -> dict[str, Any]:
    of_offsets = OFFSETS_TOPIC in (getattr(struct, "topic", ""), getattr(struct, "name", ""))
    out = {}
    for field in type(struct).FIELDS:
        if not field.is_in(version) or field.name in NOT_RECORDED:
            continue
        value = getattr(struct, field.name)
        if field.tag is not None and value == field.default:
            continue
        if of_offsets and isinstance(value, list):
            out[field.name] = in_order([_of_offsets(item, version, names) for item in value])
        elif field.name in PRODUCER_IDS and value == 0 and getattr(struct, "error_code", 0):
            out[field.name] = 0  # no id
        elif field.name == "coordinator_epoch" and getattr(struct, "producer_id", -1) != BOGUS_PRODUCER:
            out[field.name] = min(value, 0)  # a restart of Kafka raises the epoch of its coordinator
        elif field.type is UUID:
            out[field.name] = names.symbol.get(value, "none" if value == ZERO_UUID else "?")
        else:
            out[field.name] = _plain(value, version, names, field.name)
    if "aborted_transactions" in out and out["aborted_transactions"] is not None:
        # Kafka also names aborted transactions behind the records that it returns.
        end = max((one[0] + one[6][-1][0] for one in out["records"]), default=-1)
        out["aborted_transactions"] = [one for one in out["aborted_transactions"] if one["first_offset"] <= end]
    if "node_id" in out:
        out |= {key: place for key, place in PLACE_OF.items() if out.get(key) not in (-1, "", None)}
    return out


def _of_offsets(item: Any, version: int, names: Names) -> Any:
    if isinstance(item, int):
        return names.offsets_partition(item)
    fields = _fields(item, version, names)
    if "partition_index" in fields:
        fields["partition_index"] = names.offsets_partition(fields["partition_index"])
    return fields


def in_order(items: list[Any]) -> list[Any]:
    """Kafka orders lists by hash maps."""
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


def read_batches(records: Any, names: Names) -> list[list[Any]]:
    """The batches of a fetch: base offset, producer, epoch, sequence, kind, time, and records as [offset, value]."""
    out: list[list[Any]] = []
    data = bytes(records or b"")
    for position, header in batches(data, partial_tail=True):
        kind = "control " * header.is_control + "transactional" * header.is_transactional
        values = [
            [one.offset - header.base_offset, (one.key or b"").hex() if header.is_control else _text(one.value)]
            for one in decode_records(data, position)
        ]
        out.append(
            [
                header.base_offset,
                names.producer(header.producer_id),
                header.producer_epoch,
                header.base_sequence,
                kind,
                names.time(header.max_timestamp),
                values,
            ]
        )
    return out


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


def codes(response: Any) -> set[int]:
    """All error codes in a response."""
    if isinstance(response, list):
        return {code for one in response for code in codes(one)}
    if not isinstance(response, dict):
        return set()
    own = {code for key in ("error_code", "partition_error_code") if (code := response.get(key)) is not None}
    return own.union(*map(codes, response.values()))
