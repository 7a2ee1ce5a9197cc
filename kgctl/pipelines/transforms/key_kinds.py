"""The kinds of keys in __consumer_offsets, by the version at the start of the key."""

from __future__ import annotations

from dataclasses import dataclass

OFFSET_COMMIT_KEYS = (0, 1)
GROUP_METADATA_KEY = 2


@dataclass(frozen=True, slots=True)
class KeyKind:
    """`second`: the text after the group id, if there is one; `epoch_first`: the value begins with an int32 epoch."""

    version: int
    name: str
    group_type: str
    second: str | None = None
    epoch_first: bool = False

    @property
    def has_member(self) -> bool:
        return self.second == "member id"


MEMBER_ID = "member id"

# Kafka's group-coordinator/src/main/resources/common/message/*Key.json; the two versions of commit keys are not listed.
KEY_KINDS = (
    KeyKind(GROUP_METADATA_KEY, "GroupMetadata", "classic"),
    KeyKind(3, "ConsumerGroupMetadata", "consumer", epoch_first=True),
    KeyKind(4, "ConsumerGroupPartitionMetadata", "consumer"),
    KeyKind(5, "ConsumerGroupMemberMetadata", "consumer", MEMBER_ID),
    KeyKind(6, "ConsumerGroupTargetAssignmentMetadata", "consumer", epoch_first=True),
    KeyKind(7, "ConsumerGroupTargetAssignmentMember", "consumer", MEMBER_ID),
    KeyKind(8, "ConsumerGroupCurrentMemberAssignment", "consumer", MEMBER_ID, epoch_first=True),
    KeyKind(9, "ShareGroupPartitionMetadata", "share"),
    KeyKind(10, "ShareGroupMemberMetadata", "share", MEMBER_ID),
    KeyKind(11, "ShareGroupMetadata", "share", epoch_first=True),
    KeyKind(12, "ShareGroupTargetAssignmentMetadata", "share", epoch_first=True),
    KeyKind(13, "ShareGroupTargetAssignmentMember", "share", MEMBER_ID),
    KeyKind(14, "ShareGroupCurrentMemberAssignment", "share", MEMBER_ID, epoch_first=True),
    KeyKind(15, "ShareGroupStatePartitionMetadata", "share"),
    KeyKind(16, "ConsumerGroupRegularExpression", "consumer", "regular expression"),
    KeyKind(17, "StreamsGroupMetadata", "streams", epoch_first=True),
    KeyKind(18, "StreamsGroupPartitionMetadata", "streams"),
    KeyKind(19, "StreamsGroupMemberMetadata", "streams", MEMBER_ID),
    KeyKind(20, "StreamsGroupTargetAssignmentMetadata", "streams", epoch_first=True),
    KeyKind(21, "StreamsGroupTargetAssignmentMember", "streams", MEMBER_ID),
    KeyKind(22, "StreamsGroupCurrentMemberAssignment", "streams", MEMBER_ID, epoch_first=True),
    KeyKind(23, "StreamsGroupTopology", "streams"),
    KeyKind(24, "StreamsGroupTargetAssignmentResolvedTopicIds", "streams"),
)
