"""State records and rows of `__transaction_state`: round trips, and what level 0 of transaction.version leaves out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cores.transactions.records import StateRecord, TransactionRecord, TransactionTombstone, from_row, to_row
from broker.cores.transactions.states import STORED, TransactionState
from broker.protocol.transaction_log import TransactionLogValue, encode_key, encode_value
from broker.protocol.wire_types import DecodeError

text = st.text(min_size=1, max_size=12)
int64, epochs = st.integers(-1, 2**62), st.integers(0, 2**15 - 1)
partitions = st.dictionaries(text, st.sets(st.integers(0, 99), min_size=1, max_size=3), max_size=3).map(
    lambda topics: tuple(sorted((topic, index) for topic, indexes in topics.items() for index in indexes))
)


@st.composite
def transactions(draw: st.DrawFn) -> TransactionRecord:
    state = draw(st.sampled_from(list(STORED.values())))
    return TransactionRecord(
        transactional_id=draw(text),
        producer_id=draw(int64),
        previous_producer_id=draw(int64),
        next_producer_id=draw(int64),
        producer_epoch=draw(epochs),
        timeout_ms=draw(st.integers(1, 2**31 - 1)),
        state=state,
        partitions=() if state is TransactionState.EMPTY else draw(partitions),
        start_timestamp_ms=draw(int64),
        update_timestamp_ms=draw(int64),
        client_transaction_version=draw(st.integers(0, 2)),
    )


@given(transactions() | st.builds(TransactionTombstone, text, int64), st.integers(1, 2))
def test_every_state_record_survives_encoding_and_decoding(record: StateRecord, level: int) -> None:
    row = to_row(record, level)
    assert 0 <= row.partition < 50
    assert from_row(row.key, row.value, row.timestamp_ms) == record


@given(transactions())
def test_level_0_stores_neither_the_other_producer_ids_nor_the_version_of_the_client(record: TransactionRecord) -> None:
    row = to_row(record, 0)
    assert row.value is not None
    assert row.value[:2] == b"\0\0"
    left = replace(record, previous_producer_id=-1, next_producer_id=-1, client_transaction_version=0)
    assert from_row(row.key, row.value, row.timestamp_ms) == left


def test_an_unknown_kind_of_key_is_skipped() -> None:
    assert from_row(b"\0\7...", b"", 0) is None


@pytest.mark.parametrize("status", [-1, TransactionState.DEAD.value, TransactionState.PREPARE_EPOCH_FENCE.value, 8])
def test_a_state_that_is_never_stored_is_refused(status: int) -> None:
    value = TransactionLogValue(
        producer_id=1,
        producer_epoch=0,
        transaction_timeout_ms=1,
        transaction_status=status,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=1,
        transaction_start_timestamp_ms=-1,
    )
    with pytest.raises(DecodeError, match=f"transaction state {status}"):
        from_row(encode_key("t"), encode_value(value, 1), 0)


def test_states_have_kafkas_codes_and_names() -> None:
    assert {state.value: state.kafka_name for state in TransactionState} == {
        0: "Empty",
        1: "Ongoing",
        2: "PrepareCommit",
        3: "PrepareAbort",
        4: "CompleteCommit",
        5: "CompleteAbort",
        6: "Dead",
        7: "PrepareEpochFence",
    }
