"""ConsumerGroupDescribe: the members with their epochs, what they own, and their targets."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from broker.cores.groups.consumer.group import NO_TARGET, ConsumerGroup
from broker.cores.groups.consumer.member import ConsumerMember
from broker.cores.groups.consumer.target import assignor_of
from broker.cores.groups.descriptions import undescribed
from broker.cores.groups.group import ALL_OPERATIONS
from broker.cores.groups.step import Step
from broker.cores.groups.topics import TopicCatalog, named_partitions
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def describe_consumer_groups(step: Step, request: ConsumerGroupDescribeRequest) -> None:
    groups = [_describe(step, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = ALL_OPERATIONS
    step.reply(ConsumerGroupDescribeResponse(groups=groups))


def _describe(step: Step, group_id: str) -> ConsumerGroupDescribeResponse.Group:
    group = step.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        absent = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
        row = ConsumerGroupDescribeResponse.Group
        if not group_id:
            return undescribed(row, group_id, ErrorCode.INVALID_GROUP_ID)
        return undescribed(row, group_id, ErrorCode.GROUP_ID_NOT_FOUND, absent)
    catalog = step.coordinator.topics
    return ConsumerGroupDescribeResponse.Group(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.generation,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor_of(group, step.coordinator.settings.group_consumer_assignors),
        members=[_member(group, member, catalog) for member in group.members.values()],
    )


def _member(
    group: ConsumerGroup, member: ConsumerMember, catalog: TopicCatalog
) -> ConsumerGroupDescribeResponse.Member:
    subscription, current = member.subscription, member.current
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=subscription.instance_id,
        rack_id=subscription.rack_id,
        member_epoch=current.member_epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=sorted(subscription.topic_names),
        subscribed_topic_regex=subscription.topic_regex,
        assignment=_assignment(current.assigned, catalog),
        target_assignment=_assignment(group.targets.get(member.member_id, NO_TARGET), catalog),
        member_type=CONSUMER_MEMBER if subscription.classic is None else CLASSIC_MEMBER,
    )


def _assignment(
    owned: Mapping[bytes, Collection[int]], catalog: TopicCatalog
) -> ConsumerGroupDescribeResponse.Assignment:
    return ConsumerGroupDescribeResponse.Assignment(
        topic_partitions=[
            ConsumerGroupDescribeResponse.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=partitions)
            for topic_id, name, partitions in named_partitions(owned, catalog)
        ]
    )
