"""Options for Spark's own Kafka connector (`--source kafka`), and a check for the case in which it silently reads nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from kgctl.client.net import bootstrap as addresses
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.schemas import EVENTS_TOPIC, OFFSETS_TOPIC
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.log_ends import LogEnds
from kgctl.pipelines.source.options import SPARK_CLIENT_ID, Selection
from kgctl.pipelines.source.ranges import to_json

# Without the first option the connector's consumer waits half a second at the end of every task; the others save round trips.
FAST = {
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "5000",
    "kafka.max.partition.fetch.bytes": "4194304",
}
# The AdminClient, with which the connector looks up offsets, does not list internal topics; its consumer does.
DEPRECATED_OFFSET_FETCHING = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, EVENTS_TOPIC, "__transaction_state", "__share_group_state"})


class ReadNothing(KgctlError):
    name = "READ_NOTHING"


def session_conf(topics: Sequence[str]) -> dict[str, str]:
    """Session settings that the connector needs to read these topics."""
    return {DEPRECATED_OFFSET_FETCHING: "true"} if INTERNAL_TOPICS.intersection(topics) else {}


def stream_options(settings: RunSettings, topics: Sequence[str]) -> dict[str, str]:
    """Options of readStream, for either source."""
    options = _options(settings, topics)
    if isinstance(settings.since, int):
        options["startingTimestamp"] = str(settings.since)
        options["startingOffsetsByTimestampStrategy"] = "latest"
    else:
        options["startingOffsets"] = settings.since
    if settings.max_offsets_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(settings.max_offsets_per_trigger)
    return options | dict(settings.source_options)


def batch_options(settings: RunSettings, topics: Sequence[str]) -> dict[str, str]:
    """Options of read. Looks up both ends now, since each of the connector's tasks would look them up again. Raises KgctlError."""
    options = _options(settings, topics)
    with LogEnds(ConnectionSettings(addresses.parse(settings.bootstrap), SPARK_CLIENT_ID)) as log_ends:
        bounds = log_ends.bounds(log_ends.partitions(Selection(topics=tuple(topics))))
        starting = dict(bounds.first)
        ending = dict(bounds.last)
        if settings.since == "latest":
            starting = dict(bounds.last)
        elif isinstance(settings.since, int):
            found = log_ends.at(dict.fromkeys(starting, settings.since))
            starting = {one: ending[one] if offset < 0 else offset for one, offset in found.items()}
        if settings.until is not None:
            found = log_ends.at(dict.fromkeys(ending, settings.until))
            ending = {one: ending[one] if offset < 0 else offset for one, offset in found.items()}
    # A range that begins after its end holds nothing; the connector expects an empty range instead.
    ending = {one: max(starting[one], offset) for one, offset in ending.items()}
    options["startingOffsets"] = json.dumps(to_json(starting))
    options["endingOffsets"] = json.dumps(to_json(ending))
    return options | dict(settings.source_options)


def refuse_empty(bootstrap: str, topics: Sequence[str], rows: int) -> None:
    """Raise ReadNothing if there are no rows although the logs of these internal topics hold records."""
    internal = tuple(topic for topic in topics if topic in INTERNAL_TOPICS)
    if rows or not internal:
        return
    with LogEnds(ConnectionSettings(addresses.parse(bootstrap), SPARK_CLIENT_ID)) as log_ends:
        bounds = log_ends.bounds(log_ends.find(Selection(topics=internal)).partitions)
    waiting = sum(bounds.last[one] - bounds.first[one] for one in bounds.last)
    if waiting:
        raise ReadNothing(
            f"Spark's connector read no records from {' and '.join(internal)}, where up to {waiting} exist; "
            f"set {DEPRECATED_OFFSET_FETCHING}=true, or use --source kgctl"
        )


def _options(settings: RunSettings, topics: Sequence[str]) -> dict[str, str]:
    fast: Mapping[str, str] = FAST if settings.source == "kafka" else {}
    # Offsets in a transaction count only once the transaction commits.
    committed = {"kafka.isolation.level": "read_committed"}
    return {"kafka.bootstrap.servers": settings.bootstrap, "subscribe": ",".join(topics), **committed, **fast}
