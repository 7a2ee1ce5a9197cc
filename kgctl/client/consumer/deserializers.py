"""Turns the bytes of records into objects of the application."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from kgctl.client.consumer.consumer_record import ConsumerRecord
from kgctl.client.consumer.errors import DeserializationFailed

# Gets the topic and the bytes. Null keys and values stay None without a call.
Deserializer: TypeAlias = "Callable[[str, bytes], Any]"


def deserialize(
    records: Sequence[ConsumerRecord], of_key: Deserializer | None, of_value: Deserializer | None
) -> tuple[list[ConsumerRecord], DeserializationFailed | None]:
    """The records up to the first one that fails, and why."""
    out: list[ConsumerRecord] = []
    append, new, made = out.append, tuple.__new__, ConsumerRecord
    part = "key"
    try:
        for topic, partition, offset, timestamp, kind, key, value, headers, epoch in records:
            part = "key"
            if of_key is not None and key is not None:
                key = of_key(topic, key)
            part = "value"
            if of_value is not None and value is not None:
                value = of_value(topic, value)
            append(new(made, (topic, partition, offset, timestamp, kind, key, value, headers, epoch)))
    except Exception as error:  # noqa: BLE001  (the application raises anything)
        return out, DeserializationFailed(records[len(out)], part, error)
    return out, None
