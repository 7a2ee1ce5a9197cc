"""What a consumer says to arguments that cannot be meant, before it asks any broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kgctl.client.consumer.consumer import Consumer
from kgctl.client.consumer.group.calls import ListenerCall
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.consumer.subscription_pattern import SubscriptionPattern
from kgctl.client.net.errors import BadValue
from tests.harness.ports import free_port


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    with Consumer(bootstrap_servers=f"127.0.0.1:{free_port()}", group_id="g") as made:
        yield made


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda one: one.subscribe("orders"), "must be a list"),
        (lambda one: one.subscribe([""]), "is not the name of a topic"),
        (lambda one: one.subscribe(["orders"], pattern="orders"), "topics or a pattern, not both"),
        (lambda one: one.subscribe(pattern="orders-(("), "is no regular expression: missing"),
        (lambda one: one.subscribe(pattern=""), "the pattern is empty"),
        (lambda one: one.subscribe(pattern=SubscriptionPattern("orders")), "set group.protocol=consumer"),
        (lambda one: one.subscribe(["orders"], listener=print), "is no RebalanceListener"),
        (lambda one: one.assign(["orders"]), "is not a topic and the number of a partition"),
        (lambda one: one.commit({"orders": 3}), "is not a topic and the number of a partition"),
        (lambda one: one.end_offsets([("orders", -1)]), "is not a topic and the number of a partition"),
        (lambda one: one.beginning_offsets(["orders"]), "is not a topic and the number of a partition"),
        (lambda one: one.offsets_for_times({("orders", 0): -1}), "is not a time in milliseconds"),
    ],
)
def test_a_mistake_is_one_sentence(consumer: Consumer, use: Callable[[Any], object], sentence: str) -> None:
    with pytest.raises(BadValue, match=sentence):
        use(consumer)
    assert consumer.subscription() == frozenset()


def test_a_listener_of_the_blocking_consumer_is_no_coroutine() -> None:
    class Listener(RebalanceListener):
        async def on_partitions_assigned(self, partitions: object) -> None:  # type: ignore[override]
            raise AssertionError("this is not awaited")

    call = ListenerCall("assigned", Listener(), [])
    call.run()
    assert isinstance(call.error, BadValue)
    assert "Listener.on_partitions_assigned is a coroutine" in str(call.error)
