"""Checks the leader epoch of a request. One broker leads every partition forever, so there is only one epoch."""

from __future__ import annotations

from broker.protocol.errors import ErrorCode
from broker.storage import LEADER_EPOCH


def epoch_error(current_leader_epoch: int) -> ErrorCode | None:
    """The error for the leader epoch that a client believes to be current (KIP-320); -1 means that it knows none."""
    if current_leader_epoch in (-1, LEADER_EPOCH):
        return None
    return ErrorCode.UNKNOWN_LEADER_EPOCH if current_leader_epoch > LEADER_EPOCH else ErrorCode.FENCED_LEADER_EPOCH
