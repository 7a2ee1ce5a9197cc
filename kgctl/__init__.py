"""A toolkit for any Kafka cluster: the program `kgctl`, and clients for Python programs.

    from kgctl import Admin, Consumer, Producer

The names below are imported when they are first used: `import kgctl` imports nothing else. `kgctl.errors` has the errors.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from broker.security.secret import Secret
    from kgctl.client.admin.admin import Admin
    from kgctl.client.admin.async_admin import AsyncAdmin
    from kgctl.client.consumer.async_consumer import AsyncConsumer
    from kgctl.client.consumer.consumer import Consumer
    from kgctl.client.consumer.consumer_record import ConsumerRecord
    from kgctl.client.consumer.fetching.offset_lookup import OffsetAndTimestamp
    from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
    from kgctl.client.consumer.interceptors import ConsumerInterceptor
    from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
    from kgctl.client.consumer.rebalance_listener import RebalanceListener
    from kgctl.client.consumer.subscription_pattern import SubscriptionPattern
    from kgctl.client.net.errors import KgctlError
    from kgctl.client.producer.async_producer import AsyncDelivery, AsyncProducer
    from kgctl.client.producer.core.batch import Delivery, RecordMetadata
    from kgctl.client.producer.interceptors import ProducerInterceptor, ProducerRecord
    from kgctl.client.producer.producer import Producer
    from kgctl.model.described_partition import PartitionInfo
    from kgctl.model.topic_partition import TopicPartition

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncDelivery",
    "AsyncProducer",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerInterceptor",
    "ConsumerRecord",
    "Delivery",
    "KgctlError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionInfo",
    "Producer",
    "ProducerInterceptor",
    "ProducerRecord",
    "RebalanceListener",
    "RecordMetadata",
    "Secret",
    "SubscriptionPattern",
    "TopicPartition",
]

_PLACES = {
    "Admin": "kgctl.client.admin.admin",
    "AsyncAdmin": "kgctl.client.admin.async_admin",
    "AsyncConsumer": "kgctl.client.consumer.async_consumer",
    "AsyncDelivery": "kgctl.client.producer.async_producer",
    "AsyncProducer": "kgctl.client.producer.async_producer",
    "Consumer": "kgctl.client.consumer.consumer",
    "ConsumerGroupMetadata": "kgctl.client.consumer.group_metadata",
    "ConsumerInterceptor": "kgctl.client.consumer.interceptors",
    "ConsumerRecord": "kgctl.client.consumer.consumer_record",
    "Delivery": "kgctl.client.producer.core.batch",
    "KgctlError": "kgctl.client.net.errors",
    "OffsetAndMetadata": "kgctl.client.consumer.offset_and_metadata",
    "OffsetAndTimestamp": "kgctl.client.consumer.fetching.offset_lookup",
    "PartitionInfo": "kgctl.model.described_partition",
    "Producer": "kgctl.client.producer.producer",
    "ProducerInterceptor": "kgctl.client.producer.interceptors",
    "ProducerRecord": "kgctl.client.producer.interceptors",
    "RebalanceListener": "kgctl.client.consumer.rebalance_listener",
    "RecordMetadata": "kgctl.client.producer.core.batch",
    "Secret": "broker.security.secret",
    "SubscriptionPattern": "kgctl.client.consumer.subscription_pattern",
    "TopicPartition": "kgctl.model.topic_partition",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'kgctl' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(place), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
