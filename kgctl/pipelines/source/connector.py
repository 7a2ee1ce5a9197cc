"""Options for Spark's own Kafka connector (`--source kafka`), and a check for the case in which it silently reads nothing."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.schemas.sources import EVENTS_TOPIC, OFFSETS_TOPIC
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.log_ends import LogEnds
from kgctl.pipelines.source.options import Selection

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


def stream_options(settings: RunSettings, topics: Sequence[str], first: str | None = None) -> dict[str, str]:
    """Options of readStream, for either source. `first`: the offsets that `settings.since` stands for, as JSON."""
    options = {
        "kafka.bootstrap.servers": settings.bootstrap,
        "subscribe": ",".join(topics),
        # Offsets in a transaction count only once the transaction commits.
        "kafka.isolation.level": "read_committed",
    }
    if settings.source == "kafka":
        options |= FAST
    if first is not None:
        options["startingOffsets"] = first
    elif isinstance(settings.since, int):
        options["startingTimestamp"] = str(settings.since)
        options["startingOffsetsByTimestampStrategy"] = "latest"
    else:
        options["startingOffsets"] = settings.since
    if settings.max_offsets_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(settings.max_offsets_per_trigger)
    return options | dict(settings.source_options)


def refuse_empty(connection: ConnectionSettings, topics: Sequence[str], rows: int) -> None:
    """Raise ReadNothing if there are no rows although the logs of these internal topics hold records."""
    internal = tuple(topic for topic in topics if topic in INTERNAL_TOPICS)
    if rows or not internal:
        return
    with LogEnds(connection) as log_ends:
        bounds = log_ends.bounds(log_ends.find(Selection(topics=internal)).partitions)
    waiting = sum(bounds.last[one] - bounds.first[one] for one in bounds.last)
    if waiting:
        raise ReadNothing(
            f"Spark's connector read no records from {' and '.join(internal)}, where up to {waiting} exist; "
            f"set {DEPRECATED_OFFSET_FETCHING}=true, or use --source kgctl"
        )
