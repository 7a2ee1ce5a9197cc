"""TriggerRebalance: an admin asks for a new generation; no member is removed."""

from __future__ import annotations

from importlib import import_module

from broker.cores.groups.classic import rebalance
from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.events import Cause
from broker.cores.groups.group import Group
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest, TriggerRebalanceResponse

_TYPES = ("classic", "consumer")


def trigger_rebalance(step: Step, request: TriggerRebalanceRequest) -> None:
    step.reply(TriggerRebalanceResponse(groups=[_trigger(step, asked) for asked in request.groups]))


def _trigger(step: Step, asked: TriggerRebalanceRequest.Group) -> TriggerRebalanceResponse.Group:
    group = step.groups.get(asked.group_id)
    error, message = _check(asked.group_id, group)
    if error or group is None:
        return TriggerRebalanceResponse.Group(error_code=error, error_message=message, group_id=asked.group_id)
    generation = group.generation
    if not isinstance(group, ClassicGroup):
        import_module("broker.cores.groups.consumer.trigger").trigger(step, group, asked.reason or "")
    elif group.can_rebalance():
        group.note_change(Cause.REQUESTED_BY_ADMIN, reason=asked.reason or "")
        rebalance.prepare(step, group)
    return TriggerRebalanceResponse.Group(group_id=asked.group_id, generation_id=generation)


def _check(group_id: str, group: Group | None) -> tuple[ErrorCode, str | None]:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID, "The group id is empty."
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found."
    if group.TYPE not in _TYPES:
        return (
            ErrorCode.INVALID_REQUEST,
            f"Group {group_id} is a {group.TYPE} group: its members share partitions without rebalances.",
        )
    if group.state_name == "Empty":
        return ErrorCode.INVALID_REQUEST, f"Group {group_id} is Empty: it has no members to rebalance."
    return ErrorCode.NONE, None
