"""Options of producers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kgctl.client.config.option import INT_MAX, Option
from kgctl.client.config.security import SecurityOptions

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

OPTIONS = (
    Option("key.serializer", "class", None, "What makes bytes of keys; by default bytes, str and None are taken."),
    Option("value.serializer", "class", None, "What makes bytes of values; by default bytes, str and None are taken."),
    Option(
        "acks",
        "string",
        "all",
        "What a broker must have done before it answers: 0 nothing, 1 written, all (-1) copied to all in-sync replicas.",
        choices=("all", "-1", "0", "1"),
    ),
    Option("buffer.memory", "long", 32 << 20, "Bytes for records that are not sent yet; `send` waits beyond.", least=0),
    Option("max.block.ms", "long", 60_000, "How long `send` waits for metadata and for buffer space.", least=0),
    Option("batch.size", "int", 16_384, "The size in bytes at which a batch of one partition is sent.", least=0),
    Option("linger.ms", "long", 5, "How long a batch waits for further records.", least=0),
    Option(
        "delivery.timeout.ms", "int", 120_000, "How long a record may take from `send` to its acknowledgement.", least=0
    ),
    Option("compression.type", "string", "none", "How batches are compressed.", choices=CODECS),
    Option("compression.gzip.level", "int", -1, "1 is fast, 9 is small; -1: the library's choice.", least=-1, most=9),
    Option("compression.zstd.level", "int", 3, "-131072 is fast, 22 is small.", least=-131_072, most=22),
    Option("max.request.size", "int", 1 << 20, "The largest record and the largest request in bytes.", least=0),
    Option(
        "max.in.flight.requests.per.connection",
        "int",
        5,
        "Requests to one broker that wait for their answers; idempotence allows up to 5.",
        least=1,
    ),
    Option("retries", "int", INT_MAX, "How often a batch is sent again, within delivery.timeout.ms.", least=0),
    Option("enable.idempotence", "boolean", True, "No record is written twice or out of order by retries."),
    Option("transactional.id", "string", None, "The name of a transactional producer; it fences an older one."),
    Option(
        "transaction.timeout.ms", "int", 60_000, "The broker aborts a transaction that is open for this long.", least=1
    ),
    Option(
        "transaction.two.phase.commit.enable",
        "boolean",
        False,
        "An outer coordinator decides about transactions, which never time out (KIP-939); not supported.",
    ),
    Option("partitioner.class", "class", None, "What chooses partitions: an object, or MODULE:NAME."),
    Option("partitioner.ignore.keys", "boolean", False, "Choose partitions without looking at keys."),
    Option(
        "partitioner.adaptive.partitioning.enable",
        "boolean",
        True,
        "Send fewer records without keys to partitions whose brokers are slow (KIP-794).",
    ),
    Option(
        "partitioner.availability.timeout.ms",
        "long",
        0,
        "Avoid partitions whose broker has taken no batch for this time; 0: never.",
        least=0,
    ),
    Option("interceptor.classes", "list", (), "Objects, or MODULE:NAME, that see records before they are sent."),
    Option("metadata.max.idle.ms", "long", 300_000, "Forget a topic that was not used for this time.", least=5_000),
)
IGNORED = (Option("compression.lz4.level", "class", None, "LZ4 has one level here.", is_ignored=True),)


class ProducerOptions(SecurityOptions, total=False):
    """The options of `Producer` and `AsyncProducer` as keyword arguments."""

    acks: str | int
    buffer_memory: int
    max_block_ms: int
    batch_size: int
    linger_ms: int
    delivery_timeout_ms: int
    compression_type: str
    compression_gzip_level: int
    compression_zstd_level: int
    max_request_size: int
    max_in_flight_requests_per_connection: int
    retries: int
    enable_idempotence: bool
    transactional_id: str | None
    transaction_timeout_ms: int
    transaction_two_phase_commit_enable: bool
    partitioner_class: Any
    partitioner_ignore_keys: bool
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: int
    interceptor_classes: str | Sequence[Any]
    metadata_max_idle_ms: int
