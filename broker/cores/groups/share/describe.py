"""ShareGroupDescribe: the members with their epochs and what is assigned to them."""

from __future__ import annotations

from broker.cores.groups.assignors.simple import SimpleAssignor
from broker.cores.groups.descriptions import undescribed
from broker.cores.groups.group import ALL_OPERATIONS
from broker.cores.groups.records.consumer import Owned
from broker.cores.groups.share.group import ShareGroup
from broker.cores.groups.share.member import ShareMember
from broker.cores.groups.step import Step
from broker.cores.groups.topics import TopicCatalog, named_partitions
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse


def describe_share_groups(step: Step, request: ShareGroupDescribeRequest) -> None:
    groups = [_describe(step, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = ALL_OPERATIONS
    step.reply(ShareGroupDescribeResponse(groups=groups))


def _describe(step: Step, group_id: str) -> ShareGroupDescribeResponse.Group:
    if not group_id:
        return undescribed(ShareGroupDescribeResponse.Group, group_id, ErrorCode.INVALID_GROUP_ID)
    group = step.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        problem = "not found" if group is None else "is not a share group"
        return undescribed(
            ShareGroupDescribeResponse.Group, group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {problem}."
        )
    return ShareGroupDescribeResponse.Group(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.generation,
        assignment_epoch=group.assignment_epoch,
        assignor_name=SimpleAssignor.name,
        members=[_member(member, step.coordinator.topics) for member in group.members.values()],
    )


def _member(member: ShareMember, catalog: TopicCatalog) -> ShareGroupDescribeResponse.Member:
    subscription, current = member.subscription, member.current
    return ShareGroupDescribeResponse.Member(
        member_id=member.member_id,
        rack_id=subscription.rack_id,
        member_epoch=current.member_epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=sorted(subscription.topic_names),
        assignment=_assignment(current.assigned, catalog),
    )


def _assignment(owned: Owned, catalog: TopicCatalog) -> ShareGroupDescribeResponse.Assignment:
    return ShareGroupDescribeResponse.Assignment(
        topic_partitions=[
            ShareGroupDescribeResponse.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=partitions)
            for topic_id, name, partitions in named_partitions(owned, catalog)
        ]
    )
