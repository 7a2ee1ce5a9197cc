"""Makes share groups: no request of an administrator does, so a member joins and leaves (KIP-932)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from functools import partial

from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from kgctl.client.admin.removals import delete_groups
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.changes import GroupChange
from kgctl.model.groups import SHARE

_JOIN, _LEAVE = 0, -1


def make_share_groups(cluster: Cluster, topics: Mapping[str, Iterable[str]]) -> Steps[dict[str, KgctlError | None]]:
    """Groups by name, with the topics to which the member subscribes: one at least. Each then exists without members."""
    joining, leaving = {}, {}
    for group, names in topics.items():
        member = str(uuid.uuid4())
        joining[group] = _heartbeat(group, member, _JOIN, sorted(set(names)))
        leaving[group] = _heartbeat(group, member, _LEAVE)
    joined = yield from _sent(cluster, joining)
    # A member whose answer was lost may have joined.
    left = yield from _sent(cluster, leaving)
    cluster.group_types |= {group: SHARE for group, error in joined.items() if error is None}
    return {group: error or left[group] for group, error in joined.items()}


def remove_made(cluster: Cluster, groups: Iterable[str]) -> Steps[None]:
    """Delete groups that were made for offsets which the cluster did not take. What cannot be deleted stays."""
    yield from delete_groups(cluster, [GroupChange(group, None) for group in groups])


def _heartbeat(group: str, member: str, epoch: int, topics: list[str] | None = None) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
    )


def _sent(cluster: Cluster, requests: Mapping[str, ShareGroupHeartbeatRequest]) -> Steps[dict[str, KgctlError | None]]:
    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [
            Batch(Ask(node.endpoint, requests[name], ShareGroupHeartbeatResponse), [name], partial(_read, name))
            for name in names
        ]

    return (yield from cluster.at_coordinators(requests, make))


def _read(group: str, answer: ShareGroupHeartbeatResponse) -> dict[str, KgctlError | None]:
    code, asked = answer.error_code, Asked(ShareGroupHeartbeatRequest, group)
    return {group: BrokerError(code, f"group {group!r}", answer.error_message, asked=asked) if code else None}
