"""The settings of a consumer's parts, from its options."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from broker.light_dataclasses import dataclass
from kgctl.client.config.configuration import Configuration
from kgctl.client.config.option import BadOption
from kgctl.client.consumer.assignors.assignor import Assignor
from kgctl.client.consumer.assignors.loading import load_assignors
from kgctl.client.consumer.deserializers import Deserializer
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.interceptors import ConsumerInterceptor
from kgctl.client.consumer.reset_strategy import ResetStrategy, parse
from kgctl.client.network.settings import NetworkSettings


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """`group` None: the consumer neither shares partitions nor commits. `note` gets a sentence about each offset that was lost and reset; without it, the log does."""

    network: NetworkSettings
    fetch: FetchOptions
    group: GroupSettings | None
    reset: ResetStrategy
    assignors: tuple[str | Assignor, ...] = ("range", "cooperative-sticky")
    timeout_ms: int = 60_000
    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None
    interceptors: tuple[ConsumerInterceptor, ...] = ()
    note: Callable[[str], None] | None = None


def settings_of(
    options: Configuration,
    key_deserializer: Deserializer | None = None,
    value_deserializer: Deserializer | None = None,
    interceptors: Sequence[ConsumerInterceptor] = (),
) -> ConsumerSettings:
    """Arguments of a constructor come before options of the same meaning."""
    group_id = options["group.id"]
    if group_id is not None and not group_id.strip():
        raise BadOption("group.id: it is empty; leave it out to read without a group")
    load_assignors(options["partition.assignment.strategy"])  # says now what is wrong
    return ConsumerSettings(
        network=options.network(max_in_flight_requests_per_connection=100),
        fetch=_fetch_options(options),
        group=None if group_id is None else _group_settings(options, group_id),
        reset=parse(options["auto.offset.reset"]),
        assignors=options["partition.assignment.strategy"],
        timeout_ms=options["default.api.timeout.ms"],
        key_deserializer=key_deserializer or _loaded(options, "key.deserializer"),
        value_deserializer=value_deserializer or _loaded(options, "value.deserializer"),
        interceptors=(*interceptors, *(_made("interceptor.classes", one) for one in options["interceptor.classes"])),
    )


def _fetch_options(options: Configuration) -> FetchOptions:
    return FetchOptions(
        max_wait_ms=options["fetch.max.wait.ms"],
        min_bytes=options["fetch.min.bytes"],
        max_bytes=options["fetch.max.bytes"],
        max_partition_bytes=options["max.partition.fetch.bytes"],
        max_poll_records=options["max.poll.records"],
        committed_only=options["isolation.level"] == "read_committed",
        check_crcs=options["check.crcs"],
        rack=options["client.rack"],
        request_timeout_ms=options["request.timeout.ms"],
        retry_backoff_ms=options["retry.backoff.ms"],
        retry_backoff_max_ms=options["retry.backoff.max.ms"],
        metadata_max_age_ms=options["metadata.max.age.ms"],
    )


# The broker decides these for groups of the consumer protocol (KIP-848).
_OF_CLASSIC_GROUPS = ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy")


def _group_settings(options: Configuration, group_id: str) -> GroupSettings:
    if options["group.protocol"] == "consumer":
        for name in _OF_CLASSIC_GROUPS:
            if options.is_given(name):
                raise BadOption(f"{name}: the broker decides this for groups of the consumer protocol; leave it out")
    elif options.is_given("group.remote.assignor"):
        raise BadOption("group.remote.assignor: it is for groups of the consumer protocol; set group.protocol=consumer")
    return GroupSettings(
        group_id=group_id,
        group_instance_id=options["group.instance.id"],
        protocol=options["group.protocol"],
        remote_assignor=options["group.remote.assignor"],
        session_timeout_ms=options["session.timeout.ms"],
        heartbeat_interval_ms=options["heartbeat.interval.ms"],
        max_poll_interval_ms=options["max.poll.interval.ms"],
        retry_backoff_ms=options["retry.backoff.ms"],
        retry_backoff_max_ms=options["retry.backoff.max.ms"],
        request_timeout_ms=options["request.timeout.ms"],
        auto_commit=options["enable.auto.commit"],
        auto_commit_interval_ms=options["auto.commit.interval.ms"],
        client_rack=options["client.rack"] or None,
        exclude_internal_topics=options["exclude.internal.topics"],
    )


def _loaded(options: Configuration, name: str) -> Any:
    given = options[name]
    return None if given is None else _object(name, given)


def _made(name: str, given: Any) -> Any:
    """An object; a class is called to make one."""
    found = _object(name, given)
    return found() if isinstance(found, type) else found


def _object(name: str, given: Any) -> Any:
    if not isinstance(given, str):
        return given
    module, colon, attribute = given.partition(":")
    if not colon:
        raise BadOption(f"{name}: {given!r} is not module:name of a Python object")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadOption(f"{name}: {given!r}: {error}") from error
