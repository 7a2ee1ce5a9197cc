"""Rows about configs of topics, brokers, groups and client metrics, and about their changes."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.changes import PLANNED
from kgctl.model.failure import RowError

# What stands for a sensitive value.
HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A config of one resource. `value` is None if it is sensitive or not set, `default` if the cluster does not report it.

    Without a config, a resource that cannot be described.
    """

    resource_type: str
    resource: str
    config: str | None
    value: str | None
    source: str | None
    default: str | None = None
    type: str | None = None
    read_only: bool = False
    sensitive: bool = False
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A config to set or to unset; `new_value` None unsets it, which gives it its default. Of a sensitive config only HIDDEN is shown."""

    resource_type: str
    resource: str
    config: str
    old_value: str | None
    new_value: str | None
    sensitive: bool = False
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class TopicAlteration:
    """A change of one topic: of its number of partitions (`setting` is "partitions") or of a config."""

    topic: str
    setting: str
    old_value: str | None
    new_value: str | None
    status: str = PLANNED
    error: RowError | None = None
