"""The table of broker options: Kafka's names, types and defaults, and what each option does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from broker.config.option import INT_MAX, LONG_MAX, Option, boolean, double, integer, long, text, words
from broker.config.sasl_options import SaslOptions
from broker.config.security_options import SecurityOptions
from broker.light_dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Options(SaslOptions, SecurityOptions):
    """One field per option that the broker uses. The name of a field is Kafka's, with underscores for dots."""

    # Identity and listeners.
    node_id: int = integer("node.id", 1, "The id of this broker, the only one of its cluster.", least=0)
    broker_id: int = integer("broker.id", -1, "Older name of node.id; used if node.id is not set.")
    broker_rack: str | None = text("broker.rack", None, "The rack reported in Metadata.")
    listeners: str = text(
        "listeners", "PLAINTEXT://127.0.0.1:9092", "The addresses to listen on, each with the name of its listener."
    )
    advertised_listeners: str | None = text(
        "advertised.listeners", None, "The addresses given to clients; by default those to listen on."
    )
    listener_security_protocol_map: tuple[str, ...] = words(
        "listener.security.protocol.map",
        ("SASL_SSL:SASL_SSL", "PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT"),
        "The security protocol of each listener name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    )
    controller_listener_names: tuple[str, ...] = words(
        "controller.listener.names", (), "Listeners to ignore; a single node has no controller."
    )

    # Connections and requests.
    socket_request_max_bytes: int = integer(
        "socket.request.max.bytes",
        104857600,
        "The largest request in bytes; a larger one closes the connection.",
        least=1,
    )
    socket_listen_backlog_size: int = integer(
        "socket.listen.backlog.size", 50, "The length of the queue of connections to accept.", least=1
    )
    connections_max_idle_ms: int = long(
        "connections.max.idle.ms", 600000, "Close a connection after this time without requests; no Fetch waits longer."
    )
    max_connections: int = integer(
        "max.connections", INT_MAX, "The maximum number of connections.", least=0, per_listener=True
    )
    max_connections_per_ip: int = integer(
        "max.connections.per.ip", INT_MAX, "The maximum number of connections from one IP address.", least=0
    )
    max_connections_per_ip_overrides: str = text(
        "max.connections.per.ip.overrides",
        "",
        "The maximum number of connections from single hosts: host:number pairs, separated by commas.",
    )
    fetch_max_bytes: int = integer(
        "fetch.max.bytes", 57671680, "The maximum bytes of records in a Fetch response.", least=1024
    )
    max_incremental_fetch_session_cache_slots: int = integer(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "The maximum number of incremental fetch sessions; further consumers do full fetches.",
        least=0,
    )
    telemetry_max_bytes: int = integer(
        "telemetry.max.bytes",
        1048576,
        "The largest push of metrics of a client in bytes, as it is compressed.",
        least=1,
    )
    max_request_partition_size_limit: int = integer(
        "max.request.partition.size.limit",
        2000,
        "The maximum number of partitions in a DescribeTopicPartitions response.",
        least=1,
    )

    # Authorization.
    authorizer_class_name: str = text(
        "authorizer.class.name",
        "",
        "What decides who may do what: StandardAuthorizer, by ACLs. Without it, every client may do everything.",
    )
    super_users: str = text(
        "super.users", "", "The principals that may do everything, separated by semicolons: User:admin;User:ops"
    )
    allow_everyone_if_no_acl_found: bool = boolean(
        "allow.everyone.if.no.acl.found", False, "Whether everybody may use a resource to which no ACL applies."
    )

    # Quotas.
    quota_window_num: int = integer(
        "quota.window.num", 11, "Over how many samples the rates of client quotas are measured.", least=1
    )
    quota_window_size_seconds: int = integer(
        "quota.window.size.seconds", 1, "The length of each sample of client quotas.", least=1
    )
    controller_quota_window_num: int = integer(
        "controller.quota.window.num",
        11,
        "How many samples of created and deleted partitions may be used up at once.",
        least=1,
    )
    controller_quota_window_size_seconds: int = integer(
        "controller.quota.window.size.seconds", 1, "The length of each of these samples.", least=1
    )

    # Topics.
    auto_create_topics_enable: bool = boolean(
        "auto.create.topics.enable", True, "Whether a Metadata request creates missing topics."
    )
    delete_topic_enable: bool = boolean("delete.topic.enable", True, "Whether topics can be deleted.")
    num_partitions: int = integer(
        "num.partitions", 1, "The number of partitions of a topic that is created without one.", least=1
    )
    default_replication_factor: int = integer(
        "default.replication.factor",
        1,
        "The replication factor of a topic that is created without one; a single node supports only 1.",
    )

    # Groups and their offsets.
    group_initial_rebalance_delay_ms: int = integer(
        "group.initial.rebalance.delay.ms",
        0,
        "How long the first rebalance of an empty group waits for more members.",
        least=0,
    )
    group_min_session_timeout_ms: int = integer(
        "group.min.session.timeout.ms", 6000, "The minimum session timeout of a member."
    )
    group_max_session_timeout_ms: int = integer(
        "group.max.session.timeout.ms", 1800000, "The maximum session timeout of a member."
    )
    group_max_size: int = integer("group.max.size", INT_MAX, "The maximum number of members of a group.", least=1)
    group_coordinator_rebalance_protocols: tuple[str, ...] = words(
        "group.coordinator.rebalance.protocols",
        ("classic", "consumer", "streams"),
        "The protocols of groups: classic and consumer. streams and share are accepted but ignored: a feature enables share groups.",
        choices=("classic", "consumer", "streams", "share"),
    )
    group_consumer_session_timeout_ms: int = integer(
        "group.consumer.session.timeout.ms", 45000, "The session timeout of the members of consumer groups.", least=1
    )
    group_consumer_min_session_timeout_ms: int = integer(
        "group.consumer.min.session.timeout.ms", 45000, "The minimum of that session timeout.", least=1
    )
    group_consumer_max_session_timeout_ms: int = integer(
        "group.consumer.max.session.timeout.ms", 60000, "The maximum of that session timeout.", least=1
    )
    group_consumer_heartbeat_interval_ms: int = integer(
        "group.consumer.heartbeat.interval.ms", 5000, "How often members of consumer groups send heartbeats.", least=1
    )
    group_consumer_min_heartbeat_interval_ms: int = integer(
        "group.consumer.min.heartbeat.interval.ms", 5000, "The minimum of that interval.", least=1
    )
    group_consumer_max_heartbeat_interval_ms: int = integer(
        "group.consumer.max.heartbeat.interval.ms", 15000, "The maximum of that interval.", least=1
    )
    group_consumer_max_size: int = integer(
        "group.consumer.max.size", INT_MAX, "The maximum number of members of a consumer group.", least=1
    )
    group_consumer_assignors: tuple[str, ...] = words(
        "group.consumer.assignors",
        ("uniform", "range"),
        "The assignors of consumer groups; the first is the default of members that do not ask for one.",
        choices=("uniform", "range"),
    )
    group_consumer_migration_policy: str = text(
        "group.consumer.migration.policy",
        "bidirectional",
        "Whether a classic group becomes a consumer group when a member of that protocol joins (upgrade), and becomes classic again"
        " when the last of them leaves (downgrade), with members that stay.",
        choices=("bidirectional", "upgrade", "downgrade", "disabled"),
        any_case=True,
    )
    group_consumer_regex_refresh_interval_ms: int = integer(
        "group.consumer.regex.refresh.interval.ms",
        600000,
        "How often the topics of subscriptions by regular expression are looked up, if no topic is created.",
        least=10000,
    )
    group_share_session_timeout_ms: int = integer(
        "group.share.session.timeout.ms", 45000, "The session timeout of the members of share groups.", least=1
    )
    group_share_min_session_timeout_ms: int = integer(
        "group.share.min.session.timeout.ms", 45000, "The minimum of that session timeout.", least=1
    )
    group_share_max_session_timeout_ms: int = integer(
        "group.share.max.session.timeout.ms", 60000, "The maximum of that session timeout.", least=1
    )
    group_share_heartbeat_interval_ms: int = integer(
        "group.share.heartbeat.interval.ms", 5000, "How often members of share groups send heartbeats.", least=1
    )
    group_share_min_heartbeat_interval_ms: int = integer(
        "group.share.min.heartbeat.interval.ms", 5000, "The minimum of that interval.", least=1
    )
    group_share_max_heartbeat_interval_ms: int = integer(
        "group.share.max.heartbeat.interval.ms", 15000, "The maximum of that interval.", least=1
    )
    group_share_max_size: int = integer(
        "group.share.max.size", 200, "The maximum number of members of a share group.", least=1, most=1000
    )
    group_share_assignors: tuple[str, ...] = words(
        "group.share.assignors", ("simple",), "The assignor of share groups; there is one.", choices=("simple",)
    )
    offset_metadata_max_bytes: int = integer(
        "offset.metadata.max.bytes", 4096, "The maximum size of the metadata of a committed offset."
    )
    offsets_retention_minutes: int = integer(
        "offsets.retention.minutes", 10080, "How long the offsets of an empty group are retained.", least=1
    )
    offsets_retention_check_interval_ms: int = long(
        "offsets.retention.check.interval.ms",
        600000,
        "How often to check for expired offsets.",
        least=1,
    )
    offsets_topic_num_partitions: int = integer(
        "offsets.topic.num.partitions",
        50,
        "The number of partitions of __consumer_offsets; fixed once the topic exists.",
        least=1,
    )
    offsets_topic_segment_bytes: int = integer(
        "offsets.topic.segment.bytes", 104857600, "The default segment.bytes of __consumer_offsets.", least=1
    )

    # Share partitions.
    group_share_delivery_count_limit: int = integer(
        "group.share.delivery.count.limit", 5, "How often a record is delivered at most.", least=2, most=10
    )
    group_share_partition_max_record_locks: int = integer(
        "group.share.partition.max.record.locks", 2000, "The most records in flight.", least=100, most=10000
    )
    group_share_record_lock_duration_ms: int = integer(
        "group.share.record.lock.duration.ms", 30000, "How long a record is acquired.", least=1000, most=3600000
    )
    group_share_min_record_lock_duration_ms: int = integer(
        "group.share.min.record.lock.duration.ms", 15000, "The minimum of that duration.", least=1000, most=30000
    )
    group_share_max_record_lock_duration_ms: int = integer(
        "group.share.max.record.lock.duration.ms", 60000, "The maximum of that duration.", least=30000, most=3600000
    )
    group_share_max_share_sessions: int = integer(
        "group.share.max.share.sessions", 2000, "The maximum number of share sessions.", least=1
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = integer(
        "share.coordinator.snapshot.update.records.per.snapshot",
        500,
        "How many updates of a share partition __share_group_state has between two snapshots.",
        least=0,
        most=500,
    )
    share_coordinator_state_topic_num_partitions: int = integer(
        "share.coordinator.state.topic.num.partitions",
        50,
        "The number of partitions of __share_group_state; fixed once the topic exists.",
        least=1,
    )
    share_coordinator_state_topic_segment_bytes: int = integer(
        "share.coordinator.state.topic.segment.bytes",
        104857600,
        "Its default segment.bytes.",
        least=1,
    )

    # Transactions.
    transaction_max_timeout_ms: int = integer(
        "transaction.max.timeout.ms", 900000, "The maximum transaction timeout that a producer may ask for.", least=1
    )
    transactional_id_expiration_ms: int = integer(
        "transactional.id.expiration.ms",
        604800000,
        "How long a transactional id without an ongoing transaction is retained after its last use.",
        least=1,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = integer(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3600000,
        "How often to check for expired transactional ids.",
        least=1,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = integer(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10000,
        "How often Kafka checks for transactions to abort. Without effect: they are aborted when they time out.",
        least=1,
    )
    transaction_partition_verification_enable: bool = boolean(
        "transaction.partition.verification.enable",
        True,
        "Whether to check that a partition is part of the transaction before an append. Always checked, also if false.",
    )
    transaction_state_log_num_partitions: int = integer(
        "transaction.state.log.num.partitions",
        50,
        "The number of partitions of __transaction_state; fixed once the topic exists.",
        least=1,
    )
    transaction_state_log_segment_bytes: int = integer(
        "transaction.state.log.segment.bytes",
        104857600,
        "The default segment.bytes of __transaction_state.",
        least=1,
    )

    # Storage: defaults of topic configs, and settings of the broker.
    message_max_bytes: int = integer("message.max.bytes", 1048588, "The largest record batch in bytes.", least=0)
    log_message_timestamp_type: str = text(
        "log.message.timestamp.type",
        "CreateTime",
        "Whether a record keeps the timestamp of the producer or gets that of the broker.",
        choices=("CreateTime", "LogAppendTime"),
    )
    log_message_timestamp_before_max_ms: int = long(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        "How far in the past the timestamp of a producer may lie.",
        least=0,
    )
    log_message_timestamp_after_max_ms: int = long(
        "log.message.timestamp.after.max.ms",
        3600000,
        "How far in the future the timestamp of a producer may lie.",
        least=0,
    )
    log_segment_bytes: int = integer(
        "log.segment.bytes", 1073741824, "The size at which a new segment starts.", least=1048576
    )
    log_roll_ms: int | None = long("log.roll.ms", None, "The age at which a new segment starts.")
    log_roll_hours: int = integer("log.roll.hours", 168, "The same in hours; used if log.roll.ms is not set.", least=1)
    log_retention_ms: int | None = long(
        "log.retention.ms", None, "How long records are retained; -1 retains them forever."
    )
    log_retention_minutes: int | None = integer(
        "log.retention.minutes", None, "The same in minutes; used if log.retention.ms is not set."
    )
    log_retention_hours: int = integer(
        "log.retention.hours", 168, "The same in hours; used if neither ms nor minutes is set."
    )
    log_retention_bytes: int = long(
        "log.retention.bytes", -1, "How many bytes of a partition are retained; -1 sets no limit."
    )
    log_retention_check_interval_ms: int = long(
        "log.retention.check.interval.ms", 300000, "How often to check for segments to delete.", least=1
    )
    log_index_interval_bytes: int = integer(
        "log.index.interval.bytes", 4096, "The bytes of records between two entries of the sparse index.", least=0
    )
    log_cleanup_policy: tuple[str, ...] = words(
        "log.cleanup.policy",
        ("delete",),
        "What to do with old records: delete, compact, or both.",
        choices=("compact", "delete"),
    )
    log_cleaner_backoff_ms: int = long(
        "log.cleaner.backoff.ms", 15000, "How often to check for logs to compact.", least=0
    )
    log_cleaner_delete_retention_ms: int = long(
        "log.cleaner.delete.retention.ms", 86400000, "How long compaction retains a tombstone.", least=0
    )
    log_cleaner_min_cleanable_ratio: float = double(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "The minimum share of dirty bytes for a log to be compacted.",
        least=0,
        most=1,
    )
    log_cleaner_min_compaction_lag_ms: int = long(
        "log.cleaner.min.compaction.lag.ms", 0, "The minimum time before a record can be compacted.", least=0
    )
    log_cleaner_max_compaction_lag_ms: int = long(
        "log.cleaner.max.compaction.lag.ms", LONG_MAX, "The maximum time before a record must be compacted.", least=1
    )
    producer_id_expiration_ms: int = integer(
        "producer.id.expiration.ms",
        86400000,
        "How long the sequence numbers of an idle producer are retained.",
        least=1,
    )
    producer_id_expiration_check_interval_ms: int = integer(
        "producer.id.expiration.check.interval.ms", 600000, "How often to check for idle producers.", least=1
    )


def _option_of(entry: Field[Any]) -> Option:
    option: Option = entry.metadata["option"]
    return option


OPTIONS: Mapping[str, Option] = {option.name: option for option in map(_option_of, fields(Options))}
