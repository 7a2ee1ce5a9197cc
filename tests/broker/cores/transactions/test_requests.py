"""What golden scenarios cannot show: long lists, and many deadlines at once."""

from __future__ import annotations

from random import Random

import pytest

from broker.cores.core import RequestContext
from broker.cores.transactions.coordinator import TIMERS_PER_STEP
from broker.cores.transactions.expiry import RECORDS_PER_STEP
from broker.cores.transactions.partitions import SEARCHED
from broker.cores.transactions.settings import TransactionSettings
from broker.cores.transactions.states import TransactionState
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.list_transactions import ListTransactionsRequest
from tests.broker.cores.transactions.world import World


def world_of(count: int) -> World:
    """A world with the ongoing transactions t0, t1, ..., of which each has timed out after 1 s."""
    world = World()
    for number in range(count):
        request = InitProducerIdRequest(transactional_id=f"t{number}", transaction_timeout_ms=1_000)
        producer_id = world.ask(request, 5).producer_id
        world.verify(f"t{number}", producer_id, 0, [("orders", 0)], add=True)
    return world


def test_transactions_that_time_out_together_are_aborted_in_parts() -> None:
    world = world_of(250)
    world.now_ms = 1_000
    aborted = []
    while world.wake_at is not None and world.wake_at <= world.now_ms:
        before = len(world.written)
        world.take(world.core.advance(world.now_ms, world.wall_ms))
        aborted.append(len(world.written) - before)
    assert aborted == [TIMERS_PER_STEP, TIMERS_PER_STEP, 50]


@pytest.mark.parametrize("at_once", [1, 7, 3 * SEARCHED])
def test_partitions_may_be_added_in_any_order_and_more_than_once(at_once: int) -> None:
    world = World()
    producer_id = world.ask(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1_000), 5).producer_id
    everything = [(topic, index) for topic in ("b", "a") for index in range(40)]
    shuffled = Random(1).choices(everything, k=6 * SEARCHED)
    added: set[tuple[str, int]] = set()
    for at in range(0, len(shuffled), at_once):
        some = shuffled[at : at + at_once]
        world.verify("t", producer_id, 0, some, add=True)
        added |= set(some)
        record = world.core.transaction("t")
        assert record is not None
        assert record.partitions == tuple(sorted(added))
    errors = world.verify("t", producer_id, 0, everything, add=False)
    assert {partition for partition, error in errors.items() if not error} == added
    assert set(errors) == set(everything)
    assert added != set(everything)


def test_a_long_list_is_gradual_and_a_pattern_selects_from_it() -> None:
    world = world_of(1_500)
    request = ListTransactionsRequest(
        state_filters=["Ongoing"], producer_id_filters=[], transactional_id_pattern="t.*7"
    )
    context = RequestContext(1, 2, "c", "/127.0.0.1", "User:ANONYMOUS", world.wall_ms)
    (reply,) = world.core.handle(request, context, world.now_ms).replies
    assert reply.is_gradual
    # An authorizer leaves out more.
    listed = reply.response.transaction_states.only(lambda entry: entry.producer_id < 100)  # type: ignore[attr-defined]
    expected = [f"t{number}" for number in range(7, 100, 10)]
    assert [entry.transactional_id for entry in listed] == expected
    assert [entry.transactional_id for part in listed.chunks() for entry in part] == expected


def test_transactional_ids_expire_in_parts() -> None:
    world = World(TransactionSettings(expiration_ms=1_000, expiry_check_interval_ms=5_000))
    for number in range(RECORDS_PER_STEP + 10):
        world.ask(InitProducerIdRequest(transactional_id=f"t{number}", transaction_timeout_ms=1_000), 5)
    world.now_ms = 5_000
    effects = world.core.advance(world.now_ms, world.wall_ms)
    assert len(effects.state_records) == RECORDS_PER_STEP
    world.take(effects)
    world.let_pass(1_000)
    assert not world.rows
    assert not world.core.transactions()


def test_a_wall_clock_that_steps_back_does_not_stop_a_transaction() -> None:
    world = world_of(1)
    world.wall_offset_ms = -10_000_000
    world.verify("t0", 0, 0, [("orders", 1)], add=True)
    end = EndTxnRequest(transactional_id="t0", producer_id=0, producer_epoch=0, committed=True)
    assert world.ask(end, 5).error_code == 0
    record = world.core.transaction("t0")
    assert record is not None
    assert record.state is TransactionState.COMPLETE_COMMIT
    world.verify("t0", 0, 1, [("orders", 1)], add=True)
    world.let_pass(999)
    world.start()
    assert world.core.deadlines()["timeout", "t0"] == world.now_ms + 1
