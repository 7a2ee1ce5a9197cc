"""Options of consumers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kgctl.client.config.option import Option
from kgctl.client.config.security import SecurityOptions

OPTIONS = (
    Option("group.id", "string", None, "The group of this consumer; without one it neither shares nor commits."),
    Option("group.instance.id", "string", None, "The name of a static member, which keeps its partitions (KIP-345)."),
    Option(
        "group.protocol",
        "string",
        "classic",
        "Who assigns the partitions of the group: classic, a member; consumer, the broker (KIP-848).",
        choices=("classic", "consumer"),
    ),
    Option(
        "group.remote.assignor",
        "string",
        None,
        "The broker's assignor for a group of the consumer protocol: uniform or range. By default, the broker chooses.",
    ),
    Option("client.rack", "string", "", "Where this client is, to read from the nearest replica (KIP-392)."),
    Option(
        "session.timeout.ms",
        "int",
        45_000,
        "The group drops a member that it has not heard from for this time.",
        least=1,
    ),
    Option("heartbeat.interval.ms", "int", 3_000, "The time between heartbeats.", least=1),
    Option(
        "max.poll.interval.ms", "int", 300_000, "Leave the group if the program does not poll for this time.", least=1
    ),
    Option(
        "partition.assignment.strategy",
        "list",
        ("range", "cooperative-sticky"),
        "Assignors by name or MODULE:NAME, the preferred first.",
    ),
    Option("enable.auto.commit", "boolean", True, "Commit positions while polling, and before a rebalance."),
    Option("auto.commit.interval.ms", "int", 5_000, "The time between automatic commits.", least=0),
    Option(
        "auto.offset.reset",
        "string",
        "latest",
        "Where to begin without a committed offset: earliest, latest, none (an error), by_duration:PT24H (KIP-1106).",
    ),
    Option(
        "isolation.level",
        "string",
        "read_uncommitted",
        "Which records of transactions are read.",
        choices=("read_uncommitted", "read_committed"),
    ),
    Option("key.deserializer", "class", None, "What reads keys; by default they stay bytes."),
    Option("value.deserializer", "class", None, "What reads values; by default they stay bytes."),
    Option("interceptor.classes", "list", (), "Objects, or MODULE:NAME, that see records before the program."),
    Option("max.poll.records", "int", 500, "The most records that one `poll` returns.", least=1),
    Option("fetch.min.bytes", "int", 1, "A broker waits until it has this many bytes, or fetch.max.wait.ms.", least=0),
    Option("fetch.max.bytes", "int", 50 << 20, "The most bytes in one answer; a larger first batch is read.", least=0),
    Option("fetch.max.wait.ms", "int", 500, "How long a broker waits for fetch.min.bytes.", least=0),
    Option("max.partition.fetch.bytes", "int", 1 << 20, "The most bytes of one partition in an answer.", least=0),
    Option("check.crcs", "boolean", True, "Check the checksums of batches."),
    Option("exclude.internal.topics", "boolean", True, "A pattern does not match internal topics."),
    Option("allow.auto.create.topics", "boolean", True, "Subscribing may create a topic, if brokers allow it."),
    Option(
        "default.api.timeout.ms", "int", 60_000, "How long a method may take that has no timeout of its own.", least=0
    ),
)
IGNORED: tuple[Option, ...] = ()


class ConsumerOptions(SecurityOptions, total=False):
    """The options of `Consumer` and `AsyncConsumer` as keyword arguments."""

    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    client_rack: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    partition_assignment_strategy: str | Sequence[Any]
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    isolation_level: str
    interceptor_classes: str | Sequence[Any]
    max_poll_records: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    check_crcs: bool
    exclude_internal_topics: bool
    allow_auto_create_topics: bool
    default_api_timeout_ms: int
