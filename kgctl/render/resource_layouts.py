"""The tables about configs, quotas, deleted records and the cluster itself."""

from __future__ import annotations

from typing import Any

from kgctl.model.cluster_rows import ApiRow, BrokerRow, FeatureRow, LogDirRow
from kgctl.model.configs import HIDDEN, ConfigChange, ConfigRow, TopicAlteration
from kgctl.model.features import FeatureChange
from kgctl.model.quotas import QuotaChange, QuotaRow
from kgctl.model.record_deletions import RecordDeletion
from kgctl.render.columns import RELUCTANTLY, Column, Layout, Shown, Tone
from kgctl.render.parts import ERROR, ID, NAME, STATUS

SOURCE_TONES = {"default": Tone.QUIET, "broker (static)": Tone.QUIET}


def _value(row: ConfigRow) -> str | None:
    return HIDDEN if row.sensitive else row.value


def _old_value(row: ConfigChange) -> str | None:
    return HIDDEN if row.sensitive else row.old_value


def _new_value(row: ConfigChange) -> str | None:
    if row.new_value is None:
        return "(unset)"
    return HIDDEN if row.sensitive else row.new_value


def _altered(row: TopicAlteration) -> str | None:
    return "(unset)" if row.new_value is None and row.old_value is not None else row.new_value


def _yes(field: str) -> Any:
    return lambda row: "yes" if getattr(row, field) else None


def _number(field: str) -> Any:
    def text(row: Any) -> str | None:
        value = getattr(row, field)
        return None if value is None else str(int(value)) if value == int(value) else str(value)

    return text


_NAMED = 3


def _groups(row: RecordDeletion) -> str | None:
    names = [one.group for one in row.groups[:_NAMED]]
    more = len(row.groups) - _NAMED
    return ",".join(names) + (f",+{more}" if more > 0 else "") or None


def _joined(field: str) -> Any:
    return lambda row: ",".join(getattr(row, field)) or None


ENTITY = (
    NAME("USER", "user", 15, Shown.IF_ANY),
    NAME("CLIENT-ID", "client_id", 15, Shown.IF_ANY),
    NAME("IP", "ip", 15, Shown.IF_ANY),
    Column("QUOTA", "quota", 24),
)

RESOURCE_LAYOUTS: dict[str, Layout] = {
    "configs": Layout(
        ConfigRow,
        (
            Column("TYPE", "resource_type", 8, rank=2),
            NAME("NAME", "resource", 15),
            ID("CONFIG", "config", 30),
            ID("VALUE", _value, 20),
            Column("SOURCE", "source", 8, rank=1, tones=SOURCE_TONES),
            ID("DEFAULT", "default", 10, Shown.WIDE),
            Column("VALUE-TYPE", "type", 10, Shown.WIDE),
            Column("READ-ONLY", _yes("read_only"), 9, Shown.WIDE),
            ERROR,
        ),
        name="config",
    ),
    "config-changes": Layout(
        ConfigChange,
        (
            Column("TYPE", "resource_type", 8, rank=RELUCTANTLY),
            NAME("NAME", "resource", 15),
            ID("CONFIG", "config", 25),
            ID("OLD-VALUE", _old_value, 12),
            ID("NEW-VALUE", _new_value, 12),
            STATUS,
            ERROR,
        ),
        name="config",
    ),
    "topic-alterations": Layout(
        TopicAlteration,
        (
            NAME("TOPIC", "topic", 25),
            ID("SETTING", "setting", 15),
            ID("OLD-VALUE", "old_value", 12),
            ID("NEW-VALUE", _altered, 12),
            STATUS,
            ERROR,
        ),
    ),
    "record-deletion": Layout(
        RecordDeletion,
        (
            NAME("TOPIC", "topic", 20),
            Column("PARTITION", "partition", 9),
            Column("LOG-START", "log_start_offset", 10),
            Column("NEW-START", "new_start_offset", 10),
            Column("LOG-END", "log_end_offset", 10, rank=2),
            Column("RECORDS", "records", 8),
            Column("~BYTES", "estimated_bytes", 8, rank=1),
            ID("GROUPS-BELOW", _groups, 12, Shown.IF_ANY),
            STATUS,
            ERROR,
        ),
    ),
    "quotas": Layout(QuotaRow, (*ENTITY, Column("VALUE", _number("value"), 12)), name="quota"),
    "quota-changes": Layout(
        QuotaChange,
        (
            *ENTITY,
            Column("OLD-VALUE", _number("old_value"), 12),
            Column("NEW-VALUE", _number("new_value"), 12),
            STATUS,
            ERROR,
        ),
        name="quota",
    ),
    "cluster-brokers": Layout(
        BrokerRow,
        (
            Column("BROKER", lambda row: f"{row.broker}{'*' if row.controller else ''}", 6),
            NAME("ADDRESS", "address", 20),
            Column("RACK", "rack", 6),
            Column("RELEASE", "release", 7, rank=1),
            Column("PARTITIONS", "partitions", 10),
            Column("BYTES", "size_bytes", 10),
            Column("FENCED", _yes("fenced"), 6, Shown.IF_ANY, tones=Tone.BAD),
            ID("CLUSTER-ID", "cluster_id", 22, rank=2),
            ID("LISTENERS", _joined("listeners"), 15, Shown.WIDE),
            ID("LOG-DIRS", _joined("log_dirs"), 15, Shown.WIDE),
            ERROR,
        ),
    ),
    "cluster-features": Layout(
        FeatureRow,
        (
            NAME("FEATURE", "feature", 24),
            Column("LEVEL", "level", 6),
            Column("RELEASE", "release", 7, Shown.IF_ANY),
            Column("LOWEST", "min_level", 6),
            Column("HIGHEST", "max_level", 7),
        ),
    ),
    "cluster-feature-changes": Layout(
        FeatureChange,
        (
            NAME("FEATURE", "feature", 24),
            Column("OLD-LEVEL", "old_level", 9),
            Column("NEW-LEVEL", "new_level", 9),
            STATUS,
            ERROR,
        ),
    ),
    "cluster-apis": Layout(
        ApiRow,
        (
            Column("BROKER", "broker", 6),
            Column("KEY", "api_key", 5),
            NAME("API", "api", 30),
            Column("LOWEST", "min_version", 6),
            Column("HIGHEST", "max_version", 7),
            Column("USED", "used_version", 4),
            ERROR,
        ),
        name="api",
    ),
    "log-dirs": Layout(
        LogDirRow,
        (
            Column("BROKER", "broker", 6),
            NAME("LOG-DIR", "log_dir", 30),
            Column("PARTITIONS", "partitions", 10),
            Column("BYTES", "size_bytes", 12),
            Column("TOTAL", "total_bytes", 14, Shown.IF_ANY, rank=1),
            Column("USABLE", "usable_bytes", 14, Shown.IF_ANY),
            ERROR,
        ),
        name="log_dir",
    ),
}
