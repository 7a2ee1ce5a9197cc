"""State records and rows of `__consumer_offsets`: round trips, and bytes equal to those of a real Kafka."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cores.groups.records import (
    GroupMetadataRecord,
    GroupMetadataTombstone,
    MemberMetadata,
    OffsetCommitRecord,
    OffsetsRecord,
    OffsetTombstone,
    from_row,
    to_row,
)
from broker.cores.groups.records.consumer import (
    ClassicProtocols,
    Current,
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataTombstone,
    RegexRecord,
    ResolvedRegex,
    Subscription,
    TargetEpochRecord,
    TargetRecord,
)
from broker.protocol.wire_types import DecodeError

text = st.text(max_size=12)
int32, int64 = st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**62)
members = st.builds(
    MemberMetadata, text, st.none() | text, text, text, int32, int32, st.binary(max_size=20), st.binary(max_size=20)
)
topic_ids, partitions, names = st.binary(min_size=16, max_size=16), st.integers(0, 99), st.frozensets(text, max_size=3)
targets = st.dictionaries(topic_ids, st.lists(partitions, max_size=3).map(tuple), max_size=3)
owned = st.dictionaries(topic_ids, st.frozensets(partitions, max_size=3), max_size=3)
currents = st.builds(Current, int32, int32, st.integers(0, 127), owned, owned)
resolved = st.builds(ResolvedRegex, names, int64, int64)
protocols = st.lists(st.tuples(text, st.binary(max_size=9)), max_size=2).map(tuple)
subscriptions = st.builds(
    Subscription,
    st.none() | text,
    st.none() | text,
    text,
    text,
    names,
    text,
    int32,
    st.none() | text,
    st.none() | st.builds(ClassicProtocols, int32, protocols),
)
records: st.SearchStrategy[OffsetsRecord] = st.one_of(
    st.builds(
        GroupMetadataRecord,
        text,
        text,
        int32,
        st.none() | text,
        st.none() | text,
        int64,
        st.lists(members, max_size=3).map(tuple),
        int64,
    ),
    st.builds(GroupMetadataTombstone, text, int64),
    st.builds(OffsetCommitRecord, text, text, int32, int64, int32, text, int64, st.none()),
    # As in Kafka, a row with an expiry has no room for the leader epoch.
    st.builds(OffsetCommitRecord, text, text, int32, int64, st.just(-1), text, int64, int64),
    st.builds(OffsetTombstone, text, text, int32, int64),
    st.builds(GroupEpochRecord, text, int32, st.integers(-(2**63), 2**63 - 1), int64, st.just(False)),
    st.builds(GroupEpochRecord, text, st.none(), st.just(0), int64, st.just(False)),
    st.builds(PartitionMetadataTombstone, text, int64),
    st.builds(MemberRecord, text, text, st.none() | subscriptions, int64),
    st.builds(TargetEpochRecord, text, st.none() | int32, int64),
    st.builds(TargetRecord, text, text, st.none() | targets, int64),
    st.builds(CurrentRecord, text, text, st.none() | currents, int64),
    st.builds(RegexRecord, text, text, st.none() | resolved, int64),
)


@given(records)
def test_every_state_record_survives_encoding_and_decoding(record: OffsetsRecord) -> None:
    row = to_row(record)
    assert 0 <= row.partition < 50
    assert from_row(row.key, row.value, row.timestamp_ms) == record


def test_a_new_group_and_a_commit_have_the_bytes_of_a_real_kafka() -> None:
    group = to_row(GroupMetadataRecord("y1265783keep", "", 0, None, None, 0x0102030405060708, (), 7))
    assert group.partition == 48
    assert group.key == bytes.fromhex("0002000c") + b"y1265783keep"
    assert group.value == bytes.fromhex("0003 0000 00000000 ffff ffff 0102030405060708 00000000")
    offset = to_row(OffsetCommitRecord("y1265783keep", "pt", 0, 5, -1, "mm", 0x0102030405060708))
    assert offset.key == bytes.fromhex("0001000c") + b"y1265783keep" + bytes.fromhex("0002 7074 00000000")
    assert offset.value == bytes.fromhex("0003 0000000000000005 ffffffff 0002 6d6d 0102030405060708")
    assert (group.timestamp_ms, offset.timestamp_ms) == (7, 0x0102030405060708)


@pytest.mark.parametrize("kind", [9, *range(17, 24)])
def test_rows_of_newer_group_protocols_are_skipped(kind: int) -> None:
    assert from_row(kind.to_bytes(2, "big") + b"\0\1g", b"\0\0", 0) is None


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\2\0\5g", b"\0\1\0\1g"])
def test_a_damaged_key_is_an_error(key: bytes) -> None:
    with pytest.raises(DecodeError):
        from_row(key, None, 0)
