"""A member of a share group."""

from __future__ import annotations

from broker.cores.groups.records.share import ShareCurrent, ShareSubscription
from broker.light_named_tuples import NamedTuple

STABLE = 0
NO_EPOCH = -1


class ShareMember(NamedTuple):
    """What is stored of a member. It is a value: a change makes another one."""

    member_id: str
    subscription: ShareSubscription
    current: ShareCurrent


def new_member(member_id: str) -> ShareMember:
    """A member before its first heartbeat is applied."""
    return ShareMember(member_id, ShareSubscription(None, "", "", frozenset()), ShareCurrent(0, NO_EPOCH, STABLE, {}))
