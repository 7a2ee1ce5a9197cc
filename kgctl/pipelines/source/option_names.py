"""The names of the options: those of Spark's Kafka source and sink, some without effect, and some refused with the reason."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from kgctl.client.config.configuration import options_of
from kgctl.client.net.errors import KgctlError

SELECTIONS = ("subscribe", "subscribePattern", "assign")
STARTS = ("startingOffsetsByTimestamp", "startingOffsets", "startingTimestamp")
ENDS = ("endingOffsetsByTimestamp", "endingOffsets", "endingTimestamp")
BOOTSTRAP, CONTEXT, COMMAND_CONFIG = "kafka.bootstrap.servers", "kgctl.context", "kgctl.commandConfig"
COLUMNS = "kgctl.columns"
ISOLATION, COMPRESSION = "kafka.isolation.level", "kafka.compression.type"
FETCH = {
    "kafka.fetch.max.wait.ms": "max_wait_ms",
    "kafka.fetch.min.bytes": "min_bytes",
    "kafka.fetch.max.bytes": "max_bytes",
    "kafka.max.partition.fetch.bytes": "max_partition_bytes",
}
# A run decides these itself: another value would leave gaps in its tables, or records that do not belong there.
OF_RUNS = (
    *(*SELECTIONS, *STARTS, *ENDS, "startingOffsetsByTimestampStrategy"),
    *("failOnDataLoss", "includeHeaders", COLUMNS, ISOLATION, BOOTSTRAP, CONTEXT, COMMAND_CONFIG),
)
_READ = (
    *SELECTIONS,
    *STARTS,
    *ENDS,
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "failOnDataLoss",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    COLUMNS,
    ISOLATION,
    *FETCH,
)
_WRITE = ("topic", "includeHeaders", COMPRESSION)
_BOTH = (BOOTSTRAP, CONTEXT, COMMAND_CONFIG, "kafka.client.id")

# Accepted but without effect: the reader joins no group, and client and producer choose these settings themselves.
_IGNORED_READ = ("groupIdPrefix", "kafka.group.id", COMPRESSION)
# Options of Kafka's consumer and producer that kgctl's own clients do not declare.
_ONLY_JAVA = (
    "internal.auto.downgrade.txn.commit",
    "internal.leave.group.on.close",
    "internal.throw.on.fetch.stable.offset.unsupported",
    "share.acknowledgement.mode",
)
# Of Kafka's admin client alone.
_ONLY_ADMIN = {"bootstrap.controllers"}
# Both for the source and the sink: programs set the same options for both.
_OF_CLIENTS = tuple(sorted({*options_of("consumer"), *options_of("producer"), *_ONLY_JAVA} - _ONLY_ADMIN))
# Spark passes the options of a query on to its sink.
_OF_SPARK = ("checkpointLocation", "queryName")

_BINARY = "keys and values are binary columns; convert them with DataFrame operations"
_JAVA = "it names a Java class, and this source runs in Python"
_PROVIDERS = (
    "values are not resolved here; name a properties file with kgctl.commandConfig to keep secrets out of plans"
)
_REFUSED_READ = {
    "kafka.config.providers": _PROVIDERS,
    "kafka.auto.offset.reset": "set startingOffsets instead; a query keeps track of its offsets itself",
    "kafka.enable.auto.commit": "a query keeps its offsets in its checkpoint and commits none",
    "kafka.key.deserializer": _BINARY,
    "kafka.value.deserializer": _BINARY,
    "kafka.interceptor.classes": _JAVA,
}
_REFUSED_WRITE = {
    "kafka.config.providers": _PROVIDERS,
    "kafka.key.serializer": _BINARY,
    "kafka.value.serializer": _BINARY,
    "kafka.interceptor.classes": _JAVA,
    "kafka.partitioner.class": f"{_JAVA}; fill the column 'partition' instead",
    "kafka.transactional.id": "Spark's tasks commit one by one, so a transaction cannot span a batch",
}


class BadOption(KgctlError):
    name = "BAD_OPTION"


def known_to_read(given: Mapping[str, str]) -> dict[str, str]:
    """The options by lower-case name, since Spark ignores the case of names. Raises BadOption."""
    return _known(given, (*_READ, *_IGNORED_READ), _REFUSED_READ)


def known_to_write(given: Mapping[str, str]) -> dict[str, str]:
    return _known(given, _WRITE, _REFUSED_WRITE)


def is_security(name: str) -> bool:
    return name.startswith(("kafka.security.", "kafka.ssl.", "kafka.sasl."))


def _known(given: Mapping[str, str], own: tuple[str, ...], refused: Mapping[str, str]) -> dict[str, str]:
    names = (*own, *_BOTH, *_OF_SPARK, *(f"kafka.{name}" for name in _OF_CLIENTS))
    known = {name.lower(): name for name in names}
    for name in given:
        reason = refused.get(name.lower())
        if reason is not None:
            raise BadOption(f'format("kgctl") does not support {name}: {reason}')
        if name.lower() not in known and not is_security(name.lower()):
            nearest = difflib.get_close_matches(name.lower(), known, 1, 0.5)
            hint = f"; did you mean {known[nearest[0]]!r}?" if nearest else ""
            raise BadOption(f'format("kgctl") has no option {name!r}{hint}')
    return {name.lower(): value.strip() for name, value in given.items()}
