"""What the answers that describe consumer groups and share groups have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from broker.cores.groups.step import Step
    from broker.protocol.errors import ErrorCode

Row = TypeVar("Row")


def undescribed(row: Callable[..., Row], group_id: str, error: ErrorCode, message: str | None = None) -> Row:
    """The row of a group that is not described. `row` is the Group of ConsumerGroupDescribe or of ShareGroupDescribe."""
    return row(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )


def heartbeat_age_ms(step: Step, heartbeats_ms: Mapping[str, int], member_id: str) -> int:
    """The time since the last heartbeat of a member; -1: none since the broker started."""
    heard_ms = heartbeats_ms.get(member_id, -1)
    return step.now_ms - heard_ms if heard_ms >= 0 else -1
