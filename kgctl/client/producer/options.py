"""What Kafka's producer options mean for the parts of a producer."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from broker.protocol.compression import Codec
from kgctl.client.config.configuration import Configuration
from kgctl.client.config.option import BadOption
from kgctl.client.producer.core.accumulator import AccumulatorSettings
from kgctl.client.producer.core.client import CoreSettings
from kgctl.client.producer.core.sender import ALL, SenderSettings
from kgctl.client.producer.core.states import TransactionSettings
from kgctl.client.producer.interceptors import ProducerInterceptor
from kgctl.client.producer.partitioners import Partitioner, load_partitioner, sticky
from kgctl.client.producer.record_path import Serializer
from kgctl.client.producer.shared_face import Plugins, ProducerSettings

_MOST_IN_FLIGHT = 5


def settings_of(options: Configuration) -> ProducerSettings:
    """The settings of a producer. Raises BadOption if options contradict each other."""
    acks = ALL if options["acks"] in ("all", "-1") else int(options["acks"])
    name = options["transactional.id"]
    if options["transaction.two.phase.commit.enable"]:
        raise BadOption("transaction.two.phase.commit.enable: it is not supported")
    is_idempotent = _is_idempotent(options, acks)
    timeout_ms = _delivery_timeout(options)
    codec = Codec[options["compression.type"].upper()]
    accumulator = AccumulatorSettings(
        batch_bytes=max(1, options["batch.size"]),
        linger_ms=options["linger.ms"],
        codec=codec,
        level=options[f"compression.{codec.name.lower()}.level"] if codec in (Codec.GZIP, Codec.ZSTD) else None,
        retry_backoff_ms=options["retry.backoff.ms"],
        retry_backoff_max_ms=options["retry.backoff.max.ms"],
        delivery_timeout_ms=timeout_ms,
        max_request_bytes=options["max.request.size"],
        is_adaptive=options["partitioner.adaptive.partitioning.enable"],
        availability_timeout_ms=options["partitioner.availability.timeout.ms"],
    )
    sender = SenderSettings(
        acks=acks,
        retries=options["retries"],
        request_timeout_ms=options["request.timeout.ms"],
        delivery_timeout_ms=timeout_ms,
        # Without sequences, a retry could get ahead of a later batch.
        keeps_order=options["max.in.flight.requests.per.connection"] == 1 or not (is_idempotent or acks == 0),
    )
    transaction = TransactionSettings(name, options["transaction.timeout.ms"]) if name else None
    core = CoreSettings(options["buffer.memory"], is_idempotent, accumulator, sender, transaction)
    return ProducerSettings(core, options.network(), options["max.block.ms"])


def plugins_of(
    options: Configuration,
    *,
    key_serializer: Serializer | None = None,
    value_serializer: Serializer | None = None,
    partitioner: Partitioner | str | None = None,
    interceptors: tuple[ProducerInterceptor, ...] = (),
) -> Plugins:
    """The code of users: what is passed to the producer, else what the options name."""
    chosen = partitioner or options["partitioner.class"]
    if chosen is None and options["partitioner.ignore.keys"]:
        chosen = sticky
    listed = (*interceptors, *(_loaded("interceptor.classes", one) for one in options["interceptor.classes"]))
    return Plugins(
        key_serializer or _loaded("key.serializer", options["key.serializer"]),
        value_serializer or _loaded("value.serializer", options["value.serializer"]),
        load_partitioner(chosen) if isinstance(chosen, str) else chosen,
        listed,
    )


def _is_idempotent(options: Configuration, acks: int) -> bool:
    """As in Kafka: on by default, unless another option excludes it; then an explicit wish is an error."""
    in_flight = options["max.in.flight.requests.per.connection"]
    needs = {
        "acks=all": acks == ALL,
        "retries above 0": options["retries"] > 0,
        f"max.in.flight.requests.per.connection of at most {_MOST_IN_FLIGHT}": in_flight <= _MOST_IN_FLIGHT,
    }
    is_wanted, is_transactional = options["enable.idempotence"], bool(options["transactional.id"])
    if is_transactional and not is_wanted:
        raise BadOption("transactional.id: it needs enable.idempotence")
    if is_wanted and (is_transactional or options.is_given("enable.idempotence")):
        for need, holds in needs.items():
            if not holds:
                raise BadOption(f"{'transactional.id' if is_transactional else 'enable.idempotence'}: it needs {need}")
    return is_wanted and all(needs.values())


def _delivery_timeout(options: Configuration) -> int:
    least: int = options["linger.ms"] + options["request.timeout.ms"]
    found: int = options["delivery.timeout.ms"]
    if found < least and options.is_given("delivery.timeout.ms"):
        raise BadOption("delivery.timeout.ms: it must be at least linger.ms + request.timeout.ms")
    return max(found, least)


def _loaded(option: str, given: Any) -> Any:
    """An object of the user: itself, or what `module:name` says; a class is called."""
    if not isinstance(given, str):
        return given
    module, colon, attribute = given.partition(":")
    try:
        if not colon:
            raise ValueError("it is not MODULE:NAME")
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        make: Callable[[], Any] | None = found if isinstance(found, type) else None
        return found if make is None else make()
    except Exception as error:
        raise BadOption(f"{option}: cannot load {given!r}: {type(error).__name__}: {error}") from error
