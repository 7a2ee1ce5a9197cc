"""Messages in every version: round trips, truncation, damage."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.protocol.codec import DecodeError, Encoded, decode, encode, encode_entries, encode_parts
from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.share_fetch import ShareFetchResponse
from broker.protocol.wire_types import Field, Message, StructMeta
from tests.broker.protocol.generated import each_version, messages

few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@each_version()
@few
@given(data=st.data())
def test_a_message_survives_a_round_trip_and_no_proper_prefix_is_accepted(
    cls: type[Message], version: int, data: st.DataObject
) -> None:
    message = data.draw(messages(cls, version))
    encoded = encode(message, version)
    assert decode(cls, encoded, version) == message
    assert decode(cls, b"before" + encoded + b"after", version, offset=6) == message
    assert b"".join(encode_parts(message, version)) == encoded  # type: ignore[arg-type]
    for length in {*range(min(len(encoded), 150)), *range(max(0, len(encoded) - 30), len(encoded))}:
        try:
            decode(cls, encoded[:length], version)
        except DecodeError:
            continue
        pytest.fail(f"a prefix of {length} bytes was accepted")
    assert encoded_in_parts(message, version) == encoded


def encoded_in_parts(message: Message, version: int) -> bytes:
    """The message with the entries of its top-level arrays encoded in two parts."""
    for field in type(message).FIELDS:
        if field.is_in(version) and field.tag is None and (entries := entries_of(message, field)) is not None:
            encoded, middle = Encoded(), len(entries) // 2
            for part in (entries[:middle], entries[middle:]):
                setattr(message, field.name, part)
                encoded.add(encode_entries(message, field.name, version), len(part))
            setattr(message, field.name, encoded)
    return encode(message, version)


def entries_of(message: Message, field: Field) -> list[Any] | None:
    """The structs of a top-level array, except where they hold records, which are never joined."""
    element = getattr(field.type, "element", None)
    if not isinstance(element, StructMeta) or type(message) in (ProduceRequest, FetchResponse, ShareFetchResponse):
        return None
    found: list[Any] | None = getattr(message, field.name)
    return found


@each_version()
@few
@given(data=st.data())
def test_damaged_bytes_are_decoded_or_refused(cls: type[Message], version: int, data: st.DataObject) -> None:
    encoded = bytearray(encode(data.draw(messages(cls, version)), version))
    if encoded:
        for _ in range(data.draw(st.integers(1, 4))):
            encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    _decode_or_refuse(cls, bytes(encoded), version)
    _decode_or_refuse(cls, data.draw(st.binary(max_size=60)), version)


def _decode_or_refuse(cls: type[Message], encoded: bytes, version: int) -> None:
    try:
        found: Any = decode(cls, encoded, version)
    except DecodeError:
        return
    assert isinstance(found, cls)
