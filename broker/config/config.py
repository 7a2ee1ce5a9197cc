"""BrokerConfig: the broker's options, read from .properties files and overrides, checked and typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.config.listeners import (
    Endpoint,
    ListenerNames,
    NamedAddress,
    parse_advertised_addresses,
    parse_endpoint,
    parse_host_counts,
    parse_listen_addresses,
)
from broker.config.option import HIDDEN, ConfigError, Value
from broker.config.options import OPTIONS, Options
from broker.config.properties import read_properties

if TYPE_CHECKING:
    from broker.config.listener_options import ListenerOption
    from broker.cores.groups.settings import GroupSettings
    from broker.cores.transactions.settings import TransactionSettings
    from broker.storage import LogSettings

# How similar an unknown option must be to a known one to suggest it (difflib's ratio).
SUGGESTION_CUTOFF = 0.8
LISTENER_PREFIX = "listener.name."
JAAS = "sasl.jaas.config"
DURABILITIES = ("power", "process")
# Options of Kafka that are checked, and what this broker does whatever they say.
_WITHOUT_EFFECT = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "transactions are aborted when they time out",
    "transaction.partition.verification.enable": "partitions are always verified",
}
_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000


class BrokerConfig(Options):
    """The effective options. `given` holds the text of those that were set, but not of passwords; `unimplemented` names the
    ignored ones; `of_listeners` holds the options of single listeners by listener and key (see listener_options.py)."""

    durability: str
    given: Mapping[str, str]
    unimplemented: tuple[str, ...]
    of_listeners: Mapping[tuple[str, str], Value]

    def __init__(
        self,
        *,
        durability: str,
        given: Mapping[str, str],
        unimplemented: tuple[str, ...],
        of_listeners: Mapping[tuple[str, str], Value],
        **chosen: Value,
    ) -> None:
        # A generated __init__ of fifty fields would take longer to compile than all the rest of loading. Defaults are
        # class attributes.
        vars(self).update(
            chosen, durability=durability, given=given, unimplemented=unimplemented, of_listeners=of_listeners
        )

    @property
    def warnings(self) -> list[str]:
        ignored = [
            f"option {name} is from Kafka before 4.0 and is ignored"
            if _is_from_before_kafka_4(name)
            else f"option {name} is not implemented by this broker and is ignored"
            for name in self.unimplemented
        ]
        names = {address.name for address in self.listen}.union(self._listener_names().controllers)
        unknown = [
            f"option listener.name.{listener.lower()}.{key} is ignored: there is no listener {listener}"
            for listener, key in self.of_listeners
            if listener not in names
        ]
        without_mechanism = [
            f"option {name} is ignored: name a listener and a mechanism, as in "
            "listener.name.sasl_ssl.plain.sasl.jaas.config"
            for name in self.given
            if name == JAAS or (name.startswith(LISTENER_PREFIX) and name.split(".", 3)[3:] == [JAAS])
        ]
        without_authorizer = [
            f"option {name} is ignored without authorizer.class.name"
            for name in ("super.users", "allow.everyone.if.no.acl.found")
            if name in self.given and not self.authorizer_class_name
        ]
        without_effect = [
            f"option {name} has no effect: {instead}"
            for name, instead in _WITHOUT_EFFECT.items()
            if self.value_of(name) != OPTIONS[name].default
        ]
        return ignored + unknown + without_mechanism + without_authorizer + without_effect

    @property
    def listen(self) -> list[NamedAddress]:
        """The listeners to serve, in the order of the option `listeners`; at least one."""
        return parse_listen_addresses(self.listeners, self._listener_names())

    @property
    def advertised(self) -> dict[str, Endpoint]:
        """The addresses that clients are given, by the name of the listener; without an entry it is the bound one."""
        if self.advertised_listeners is None:
            return {}
        found = parse_advertised_addresses(self.advertised_listeners, self._listener_names())
        return {address.name: address.endpoint for address in found}

    def _listener_names(self) -> ListenerNames:
        return ListenerNames.parse(self.listener_security_protocol_map, self.controller_listener_names)

    @property
    def connections_per_host(self) -> list[tuple[str, int]]:
        """The hosts and limits of max.connections.per.ip.overrides."""
        return parse_host_counts("max.connections.per.ip.overrides", self.max_connections_per_ip_overrides)

    @property
    def super_user_names(self) -> tuple[str, ...]:
        """The principals of super.users."""
        from broker.config.authorization import parse_super_users

        return parse_super_users(self.super_users)

    @property
    def retention_ms(self) -> int:
        """The first of log.retention.ms, .minutes and .hours that is set, in milliseconds; -1 keeps records forever."""
        if self.log_retention_ms is not None:
            retention_ms = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            retention_ms = self.log_retention_minutes * _MINUTE_MS
        else:
            retention_ms = self.log_retention_hours * _HOUR_MS
        return max(retention_ms, -1)

    @property
    def roll_ms(self) -> int:
        """The first of log.roll.ms and .hours that is set, in milliseconds."""
        return self.log_roll_ms if self.log_roll_ms is not None else self.log_roll_hours * _HOUR_MS

    def value_of(self, name: str) -> Value:
        """The effective value of an option, by Kafka's name. KeyError for an option that this broker lacks."""
        value: Value = getattr(self, OPTIONS[name].field_name)
        return value

    def listener_value(self, listener: str, name: str, mechanism: str | None = None) -> Value:
        """The effective value of an option for one listener, and for one SASL mechanism of it."""
        keys = [f"{mechanism.lower()}.{name}", name] if mechanism is not None else [name]
        for key in keys:
            if (listener, key) in self.of_listeners:
                return self.of_listeners[listener, key]
        return self.value_of(name)

    def client_auth(self, address: NamedAddress) -> str:
        """The effective ssl.client.auth of a listener. With SASL, only that of the listener itself counts (KIP-684)."""
        if address.uses_sasl:
            return str(self.of_listeners.get((address.name, "ssl.client.auth"), "none"))
        return str(self.listener_value(address.name, "ssl.client.auth"))

    def group_settings(self) -> GroupSettings:
        """The part that the group coordinator reads; its fields have the same names as the options here."""
        from broker.cores.groups.settings import GroupSettings

        return GroupSettings(**{name: getattr(self, name) for name in GroupSettings._fields})

    def transaction_settings(self) -> TransactionSettings:
        """The part that the transaction coordinator reads."""
        from broker.cores.transactions.settings import TransactionSettings

        return TransactionSettings(
            max_timeout_ms=self.transaction_max_timeout_ms,
            expiration_ms=self.transactional_id_expiration_ms,
            expiry_check_interval_ms=self.transaction_remove_expired_transaction_cleanup_interval_ms,
        )

    def log_settings(self) -> LogSettings:
        """The part that the storage reads."""
        from broker.storage import LogSettings

        return LogSettings(
            durability=self.durability,
            segment_bytes=self.log_segment_bytes,
            segment_ms=self.roll_ms,
            index_interval_bytes=self.log_index_interval_bytes,
            message_max_bytes=self.message_max_bytes,
            message_timestamp_type=self.log_message_timestamp_type,
            message_timestamp_before_max_ms=self.log_message_timestamp_before_max_ms,
            message_timestamp_after_max_ms=self.log_message_timestamp_after_max_ms,
            cleanup_policy=",".join(self.log_cleanup_policy),
            retention_ms=self.retention_ms,
            retention_bytes=self.log_retention_bytes,
            retention_check_interval_ms=self.log_retention_check_interval_ms,
            delete_retention_ms=self.log_cleaner_delete_retention_ms,
            min_compaction_lag_ms=self.log_cleaner_min_compaction_lag_ms,
            max_compaction_lag_ms=self.log_cleaner_max_compaction_lag_ms,
            min_cleanable_dirty_ratio=self.log_cleaner_min_cleanable_ratio,
            compaction_interval_ms=self.log_cleaner_backoff_ms,
            producer_id_expiration_ms=self.producer_id_expiration_ms,
            producer_id_expiration_check_interval_ms=self.producer_id_expiration_check_interval_ms,
            offsets_topic_partitions=self.offsets_topic_num_partitions,
            offsets_topic_segment_bytes=self.offsets_topic_segment_bytes,
            transactions_topic_partitions=self.transaction_state_log_num_partitions,
            transactions_topic_segment_bytes=self.transaction_state_log_segment_bytes,
            share_state_topic_partitions=self.share_coordinator_state_topic_num_partitions,
            share_state_topic_segment_bytes=self.share_coordinator_state_topic_segment_bytes,
        )


def load_config(
    files: Iterable[Path] = (),
    overrides: Iterable[str] | Mapping[str, str] = (),
    *,
    listen: str | None = None,
    durability: str = "power",
    defaults: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """Load options from `defaults`, `files`, then `overrides` ("key=value"), then `listen` ("[NAME://]HOST:PORT"); later ones win.

    Raises ConfigError for an unreadable file, a name that Kafka does not have, or a value out of bounds.
    """
    given: dict[str, str] = dict(defaults or {})
    origins: dict[str, str] = {}  # the file and line that set an option
    for path in files:
        for number, name, text in read_properties(path):
            given[name], origins[name] = text, f"{path}, line {number}"
    pairs = dict(overrides if isinstance(overrides, Mapping) else map(_split_override, overrides))
    for name, text in pairs.items():
        given[name] = text
        origins.pop(name, None)
    if listen is not None:
        name, separator, address = listen.rpartition("://")
        endpoint = parse_endpoint("--listen", address)
        usual = (defaults or {}).get("listeners", "PLAINTEXT").partition("://")[0]
        given["listeners"] = f"{name if separator else usual}://{endpoint}"
        origins.pop("listeners", None)
    if durability not in DURABILITIES:
        raise ConfigError(f"durability {durability!r} is not one of {', '.join(DURABILITIES)}")

    chosen: dict[str, Any] = {}
    of_listeners: dict[tuple[str, str], Value] = {}
    unimplemented = []
    for name, text in given.items():
        try:
            option = OPTIONS.get(name)
            found = _find_listener_option(name)
            if option is not None:
                chosen[option.field_name] = option.parse(text)
            elif found is not None:
                option = found.option
                of_listeners[found.listener, found.key] = option.parse(text)
            else:
                _check_known_to_kafka(name)
                unimplemented.append(name)
            if option is not None and option.kind == "password":
                given[name] = HIDDEN
                if name in pairs and not isinstance(overrides, Mapping):
                    raise ConfigError(f"{name}: a secret in the arguments is visible to other users: use --config FILE")
        except ConfigError as error:
            raise _located(error, origins.get(name)) from None
    if "broker_id" in chosen:
        chosen.setdefault("node_id", max(chosen["broker_id"], 0))
    config = BrokerConfig(
        durability=durability,
        given=given,
        unimplemented=tuple(sorted(unimplemented)),
        of_listeners=of_listeners,
        **chosen,
    )
    try:
        _check_together(config)
    except ConfigError as error:
        # The text starts with the name of the option, or with what several options share.
        raise _located(error, origins.get(str(error).partition("=")[0])) from None
    return config


def _located(error: ConfigError, place: str | None) -> ConfigError:
    return error if place is None else ConfigError(f"{place}: {error}")


def _split_override(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise ConfigError(f"override {text!r}: must be key=value")
    return name.strip(), value


def _check_known_to_kafka(name: str) -> None:
    """Raise ConfigError unless some version of Kafka has an option of this name."""
    from broker.config.ignored_options import UNIMPLEMENTED

    plain = name
    if name.startswith(LISTENER_PREFIX):
        from broker.config.listener_options import plain_name

        plain = plain_name(name)
    if plain in UNIMPLEMENTED or (plain in OPTIONS and plain != name) or _is_from_before_kafka_4(name):
        return
    import difflib

    nearest = difflib.get_close_matches(plain, [*OPTIONS, *UNIMPLEMENTED], n=1, cutoff=SUGGESTION_CUTOFF)
    raise ConfigError(f"unknown option {name}" + (f"; did you mean {nearest[0]}?" if nearest else ""))


def _find_listener_option(name: str) -> ListenerOption | None:
    if not name.startswith(LISTENER_PREFIX):
        return None
    from broker.config.listener_options import find_listener_option

    return find_listener_option(name)


def _is_from_before_kafka_4(name: str) -> bool:
    from broker.config.renamed_options import FORMER, FORMER_PREFIXES

    return name in FORMER or name.startswith(FORMER_PREFIXES)


def _check_together(config: BrokerConfig) -> None:
    if config.authorizer_class_name or config.super_users:
        from broker.config.authorization import check_authorizer

        check_authorizer(config.authorizer_class_name)
        _ = config.super_user_names
    unknown = config.advertised.keys() - {address.name for address in config.listen}
    if unknown:
        raise ConfigError(
            f"advertised.listeners={config.advertised_listeners}: {min(unknown)} is not one of listeners={config.listeners}"
        )
    if not config.connections_per_host and config.max_connections_per_ip == 0:
        raise ConfigError("max.connections.per.ip=0: needs max.connections.per.ip.overrides; no host could connect")
    if config.group_min_session_timeout_ms > config.group_max_session_timeout_ms:
        raise ConfigError(
            f"group.min.session.timeout.ms={config.group_min_session_timeout_ms}: "
            f"more than group.max.session.timeout.ms={config.group_max_session_timeout_ms}"
        )
    _check_group_timeouts(config)
    if not config.group_consumer_assignors:
        raise ConfigError("group.consumer.assignors: names no assignor")
    if len(config.group_share_assignors) != 1:
        raise ConfigError("group.share.assignors: must name one assignor")
    if config.retention_ms == 0:
        raise ConfigError("log.retention: must be -1 (forever) or more than 0")
    if config.roll_ms < 1:
        raise ConfigError(f"log.roll.ms={config.roll_ms}: must be at least 1")
    if config.default_replication_factor not in (-1, 1):
        raise ConfigError(
            f"default.replication.factor={config.default_replication_factor}: this broker is a single node and holds one replica"
        )


# The timeouts of groups of newer protocols with their bounds: the session, and the interval of heartbeats, which is shorter.
_TIMEOUTS = (
    (
        (
            "group.consumer.session.timeout.ms",
            "group.consumer.min.session.timeout.ms",
            "group.consumer.max.session.timeout.ms",
        ),
        (
            "group.consumer.heartbeat.interval.ms",
            "group.consumer.min.heartbeat.interval.ms",
            "group.consumer.max.heartbeat.interval.ms",
        ),
    ),
    (
        ("group.share.session.timeout.ms", "group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"),
        (
            "group.share.heartbeat.interval.ms",
            "group.share.min.heartbeat.interval.ms",
            "group.share.max.heartbeat.interval.ms",
        ),
    ),
)


def _check_group_timeouts(config: BrokerConfig) -> None:
    for pair in _TIMEOUTS:
        for names in pair:
            value, least, most = (_number(config, name) for name in names)
            if not least <= value <= most:
                raise ConfigError(f"{names[0]}={value}: must be from {names[1]}={least} to {names[2]}={most}")
        (session, *_), (heartbeat, *_) = pair
        session_ms, heartbeat_ms = _number(config, session), _number(config, heartbeat)
        if heartbeat_ms >= session_ms:
            raise ConfigError(f"{heartbeat}={heartbeat_ms}: must be less than {session}={session_ms}")


def _number(config: BrokerConfig, name: str) -> int:
    value = config.value_of(name)
    assert isinstance(value, int)
    return value
