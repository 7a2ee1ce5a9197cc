"""BrokerConfig: the broker's options read from .properties files and overrides, checked and typed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.config.options import OPTIONS, ConfigError, Option, Options, Value

if TYPE_CHECKING:
    from broker.cores.groups.settings import GroupSettings
    from broker.storage.settings import LogSettings

__all__ = ["OPTIONS", "BrokerConfig", "ConfigError", "Endpoint", "load_config", "parse_properties"]

# How alike an unknown name and a known one must be for the one to be taken for a slip of the other.
CLOSE = 0.8
DURABILITIES = ("power", "process")
_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and a port. An empty host means every interface; port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def is_loopback(self) -> bool:
        import socket

        # Numbers first: a look-up loads the tables of international names.
        if self.host in ("localhost", "::1"):
            return True
        if self.host.startswith("127."):
            try:
                socket.inet_pton(socket.AF_INET, self.host)
            except OSError:
                pass
            else:
                return True

        try:
            found = socket.getaddrinfo(self.host or None, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except OSError:
            return False
        return all(str(address[0]).startswith("127.") or address[0] == "::1" for *_, address in found)


class BrokerConfig(Options):
    """The options in force. `given` holds the text of those that were set, `unimplemented` those set in vain."""

    durability: str
    given: Mapping[str, str]
    unimplemented: tuple[str, ...]

    def __init__(
        self, *, durability: str, given: Mapping[str, str], unimplemented: tuple[str, ...], **chosen: Value
    ) -> None:
        # By hand: an initialiser of fifty fields takes longer to make than all else here. Defaults are the class's.
        vars(self).update(chosen, durability=durability, given=given, unimplemented=unimplemented)

    @property
    def warnings(self) -> list[str]:
        return [
            f"option {name} is one of Kafka before 4.0; it is not used and has no effect"
            if _is_former(name)
            else f"option {name} is not implemented by this broker and has no effect"
            for name in self.unimplemented
        ]

    @property
    def listen(self) -> Endpoint:
        """Where to listen: the first of `listeners` that is no controller's."""
        found = self._endpoints("listeners", self.listeners)
        if len(found) != 1:
            raise ConfigError(f"listeners={self.listeners}: exactly one plain-text listener is served")
        return found[0]

    @property
    def advertised(self) -> Endpoint | None:
        """The address that clients are told, if one was configured; else they are told the bound one."""
        if self.advertised_listeners is None:
            return None
        found = self._endpoints("advertised.listeners", self.advertised_listeners)
        if len(found) != 1 or found[0].host in ("", "0.0.0.0", "::"):
            raise ConfigError(
                f"advertised.listeners={self.advertised_listeners}: exactly one address that clients can reach"
            )
        return found[0]

    @property
    def retention_ms(self) -> int:
        """The first given of log.retention.ms, .minutes, .hours, in milliseconds; -1 for ever."""
        if self.log_retention_ms is not None:
            kept_ms = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            kept_ms = self.log_retention_minutes * _MINUTE_MS
        else:
            kept_ms = self.log_retention_hours * _HOUR_MS
        return max(kept_ms, -1)

    @property
    def roll_ms(self) -> int:
        """The first given of log.roll.ms, .hours, in milliseconds."""
        return self.log_roll_ms if self.log_roll_ms is not None else self.log_roll_hours * _HOUR_MS

    def value_of(self, name: str) -> Value:
        """The value in force of the option under Kafka's name; KeyError for one that we do not have."""
        value: Value = getattr(self, OPTIONS[name].field_name)
        return value

    def rows(self) -> Iterator[tuple[Option, Value, bool]]:
        """Every option with its value in force and whether it was given."""
        for name, option in OPTIONS.items():
            yield option, self.value_of(name), name in self.given

    def group_settings(self) -> GroupSettings:
        """The part that the coordinator reads; its fields bear the names of ours."""
        from broker.cores.groups.settings import GroupSettings

        return GroupSettings(**{field.name: getattr(self, field.name) for field in fields(GroupSettings)})

    def log_settings(self) -> LogSettings:
        """The part that the log reads."""
        from broker.storage.settings import LogSettings

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
        )

    def _endpoints(self, option: str, text: str) -> list[Endpoint]:
        protocols = dict(entry.rsplit(":", 1) for entry in self.listener_security_protocol_map if ":" in entry)
        found = []
        for entry in filter(None, (part.strip() for part in text.split(","))):
            name, separator, address = entry.partition("://")
            if not separator:
                raise ConfigError(f"{option}={text}: {entry!r} is not NAME://HOST:PORT")
            if name in self.controller_listener_names:
                continue
            if protocols.get(name) != "PLAINTEXT":
                known = f"its protocol is {protocols[name]}" if name in protocols else "it has no protocol"
                raise ConfigError(f"{option}={text}: {known}; only PLAINTEXT is served")
            found.append(_endpoint(option, address))
        return found


def load_config(
    files: Iterable[Path] = (),
    overrides: Iterable[str] | Mapping[str, str] = (),
    *,
    listen: str | None = None,
    durability: str = "power",
) -> BrokerConfig:
    """The config of `files`, a later one over an earlier, then `overrides` ("key=value"), then `listen` ("HOST:PORT").

    Raises ConfigError for what cannot be read, a name that Kafka lacks, or a value out of its bounds.
    """
    given: dict[str, str] = {}
    origins: dict[str, str] = {}  # where in a file an option was given
    for path in files:
        for number, name, text in _read(path):
            given[name], origins[name] = text, f"{path}, line {number}"
    for name, text in overrides.items() if isinstance(overrides, Mapping) else map(_split_override, overrides):
        given[name] = text
        origins.pop(name, None)
    if listen is not None:
        endpoint = _endpoint("--listen", listen)
        given["listeners"] = f"PLAINTEXT://{endpoint}"
        origins.pop("listeners", None)
    if durability not in DURABILITIES:
        raise ConfigError(f"durability {durability!r} is not one of {', '.join(DURABILITIES)}")

    chosen: dict[str, Any] = {}
    unimplemented = []
    for name, text in given.items():
        try:
            if name in OPTIONS:
                chosen[OPTIONS[name].field_name] = OPTIONS[name].parse(text)
            else:
                _check_known_to_kafka(name)
                unimplemented.append(name)
        except ConfigError as error:
            raise _located(error, origins.get(name)) from None
    if "broker_id" in chosen:
        chosen.setdefault("node_id", max(chosen["broker_id"], 0))
    config = BrokerConfig(durability=durability, given=given, unimplemented=tuple(sorted(unimplemented)), **chosen)
    try:
        _check_together(config)
    except ConfigError as error:
        # Its first word names the option, or stands for several.
        raise _located(error, origins.get(str(error).partition("=")[0])) from None
    return config


def _located(error: ConfigError, place: str | None) -> ConfigError:
    return error if place is None else ConfigError(f"{place}: {error}")


def _read(path: Path) -> list[tuple[int, str, str]]:
    """The options of one file: (number of the line, name, text)."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read config file {path}: {getattr(error, 'strerror', None) or error}") from None
    found = []
    for number, line in _logical_lines(content):
        try:
            found.append((number, *_split_property(line)))
        except ConfigError as error:
            raise _located(error, f"{path}, line {number}") from None
    return found


def parse_properties(text: str) -> dict[str, str]:
    """The pairs of a Java .properties file: comments, `=` `:` or blank as separator, continued lines, escapes."""
    return dict(_split_property(line) for _, line in _logical_lines(text))


def _split_property(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return _unescape(line[:end]), _unescape(rest)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, and the number of the first line of each."""
    joined, first = "", 0
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = natural.lstrip(" \t\f")
        if not joined:
            if not line or line[0] in "#!":
                continue
            first = number
        joined += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            joined = joined[:-1]
            continue
        yield first, joined
        joined = ""
    if joined:
        yield first, joined


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out, at = "", 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            out += char
        elif text[at : at + 1] == "u":
            digits = text[at + 1 : at + 5]
            if len(digits) < 4 or not set(digits) <= set("0123456789abcdefABCDEF"):
                raise ConfigError(f"malformed \\u escape in {text!r}")
            out += chr(int(digits, 16))
            at += 5
        else:
            out += {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(text[at : at + 1], text[at : at + 1])
            at += 1
    return out


def _split_override(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise ConfigError(f"override {text!r}: must be key=value")
    return name.strip(), value


def _check_known_to_kafka(name: str) -> None:
    """Raises ConfigError if Kafka has, and had, no option of this name."""
    from broker.config.ignored_options import PREFIXES, UNIMPLEMENTED

    if name in UNIMPLEMENTED or name.startswith(PREFIXES) or _is_former(name):
        return
    import difflib

    nearest = difflib.get_close_matches(name, [*OPTIONS, *UNIMPLEMENTED], n=1, cutoff=CLOSE)
    raise ConfigError(f"unknown option {name}" + (f"; did you mean {nearest[0]}?" if nearest else ""))


def _is_former(name: str) -> bool:
    from broker.config.renamed_options import FORMER, FORMER_PREFIXES

    return name in FORMER or name.startswith(FORMER_PREFIXES)


def _check_together(config: BrokerConfig) -> None:
    _ = config.listen, config.advertised
    if config.group_min_session_timeout_ms > config.group_max_session_timeout_ms:
        raise ConfigError(
            f"group.min.session.timeout.ms={config.group_min_session_timeout_ms}: "
            f"more than group.max.session.timeout.ms={config.group_max_session_timeout_ms}"
        )
    if config.retention_ms == 0:
        raise ConfigError("log.retention: must be -1 (for ever) or more than 0")
    if config.roll_ms < 1:
        raise ConfigError(f"log.roll.ms={config.roll_ms}: must be at least 1")
    if config.default_replication_factor not in (-1, 1):
        raise ConfigError(f"default.replication.factor={config.default_replication_factor}: one node holds one replica")


def _endpoint(option: str, text: str) -> Endpoint:
    host, separator, port = text.strip().rpartition(":")
    bare = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    if not separator or not (port.isascii() and port.isdigit()) or int(port) > 65535 or (":" in host and bare == host):
        raise ConfigError(f"{option} {text}: not HOST:PORT (an IPv6 host stands in brackets, a port is at most 65535)")
    return Endpoint(bare, int(port))
