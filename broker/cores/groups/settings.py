"""The settings of the group coordinator, with Kafka's names and defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from broker.light_named_tuples import NamedTuple

# Returns the configs that are set for a group. Their values are valid; groups need not exist.
GroupConfigs: TypeAlias = "Callable[[str], Mapping[str, str]]"
_NOTHING: Mapping[str, str] = {}


class GroupSettings(NamedTuple):
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_share_session_timeout_ms: int = 45_000
    group_share_heartbeat_interval_ms: int = 5_000
    group_share_max_size: int = 200


def no_configs(group_id: str) -> Mapping[str, str]:
    """No group has configs."""
    return _NOTHING
