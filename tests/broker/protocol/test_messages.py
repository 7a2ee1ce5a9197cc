"""Messages in every version: round trips, truncation, damage, and what independent libraries make of them."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.protocol.api_keys import NATIVE_FIRST_KEY
from broker.protocol.codec import DecodeError, Encoded, decode, encode, encode_entries, encode_parts
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsResponse
from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.share_fetch import ShareFetchResponse
from broker.protocol.wire_types import Field, Message, StructMeta
from tests.broker.protocol.generated import MESSAGE_VERSIONS, each_version, messages
from tests.broker.protocol.libraries import assert_libraries_agree, is_in_a_library

few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def test_one_of_the_libraries_has_each_message_of_kafka() -> None:
    of_kafka = [case for case in MESSAGE_VERSIONS if case[0].API_KEY < NATIVE_FIRST_KEY]
    assert [case for case in of_kafka if not is_in_a_library(*case)] == []


# What a message of a version must withstand is checked in one test: drawing messages costs more than all the checks.
@each_version()
@few
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_message_survives_a_round_trip_damage_and_other_libraries(
    cls: type[Message], version: int, data: st.DataObject, seed: int
) -> None:
    message = data.draw(messages(cls, version))
    if isinstance(message, ApiVersionsResponse):
        message.error_code = ErrorCode.NONE  # with any other, kafka-python expects version 0
    encoded = encode(message, version)
    assert decode(cls, encoded, version) == message
    assert decode(cls, b"before" + encoded + b"after", version, offset=6) == message
    assert b"".join(encode_parts(message, version)) == encoded  # type: ignore[arg-type]
    assert_libraries_agree(message, version, encoded)
    assert_no_proper_prefix_is_accepted(cls, version, encoded)
    assert_damage_is_decoded_or_refused(cls, version, encoded, random.Random(seed))
    assert encoded_in_parts(message, version) == encoded


def assert_no_proper_prefix_is_accepted(cls: type[Message], version: int, encoded: bytes) -> None:
    for length in {*range(min(len(encoded), 150)), *range(max(0, len(encoded) - 30), len(encoded))}:
        try:
            decode(cls, encoded[:length], version)
        except DecodeError:
            continue
        pytest.fail(f"a prefix of {length} bytes was accepted")


def assert_damage_is_decoded_or_refused(
    cls: type[Message], version: int, encoded: bytes, randomly: random.Random
) -> None:
    damaged = bytearray(encoded)
    if damaged:
        for _ in range(randomly.randint(1, 4)):
            damaged[randomly.randrange(len(damaged))] = randomly.choice([0, 1, 0x7F, 0x80, 0xFF])
    for found in (bytes(damaged), randomly.randbytes(randomly.randrange(61))):
        with contextlib.suppress(DecodeError):
            assert isinstance(decode(cls, found, version), cls)


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
