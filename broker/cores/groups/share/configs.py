"""The timeouts of a share group: its own config, or else the option of the broker."""

from __future__ import annotations

from broker.cores.groups.step import CoordinatorState

SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS = "share.session.timeout.ms", "share.heartbeat.interval.ms"


def session_timeout_ms(coordinator: CoordinatorState, group_id: str) -> int:
    """A change applies to a member from its next heartbeat on."""
    own = coordinator.configs(group_id).get(SESSION_TIMEOUT_MS)
    return coordinator.settings.group_share_session_timeout_ms if own is None else int(own)


def heartbeat_interval_ms(coordinator: CoordinatorState, group_id: str) -> int:
    own = coordinator.configs(group_id).get(HEARTBEAT_INTERVAL_MS)
    return coordinator.settings.group_share_heartbeat_interval_ms if own is None else int(own)
