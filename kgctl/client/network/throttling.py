"""How long a client leaves a broker alone that has throttled it (KIP-219)."""

from __future__ import annotations

from broker.protocol.wire_types import Message

# By API key: the first version in which the broker answers at once and the client waits. Before, the broker waited itself.
_SINCE = {
    0: 6,  # Produce
    1: 8,  # Fetch
    2: 3,  # ListOffsets
    3: 6,  # Metadata
    8: 4,  # OffsetCommit
    9: 4,  # OffsetFetch
    10: 2,  # FindCoordinator
    11: 3,  # JoinGroup
    12: 2,  # Heartbeat
    13: 2,  # LeaveGroup
    14: 2,  # SyncGroup
    15: 2,  # DescribeGroups
    16: 2,  # ListGroups
    18: 2,  # ApiVersions
    19: 3,  # CreateTopics
    20: 2,  # DeleteTopics
    21: 1,  # DeleteRecords
    22: 1,  # InitProducerId
    24: 1,  # AddPartitionsToTxn
    25: 1,  # AddOffsetsToTxn
    26: 1,  # EndTxn
    28: 1,  # TxnOffsetCommit
    29: 1,  # DescribeAcls
    30: 1,  # CreateAcls
    31: 1,  # DeleteAcls
    32: 2,  # DescribeConfigs
    33: 1,  # AlterConfigs
    35: 1,  # DescribeLogDirs
    37: 1,  # CreatePartitions
    42: 1,  # DeleteGroups
}


def throttled_for_ms(answer: Message, version: int) -> int:
    """The pause that an answer asks for."""
    pause: int = getattr(answer, "throttle_time_ms", 0)
    return pause if pause > 0 and version >= _SINCE.get(answer.API_KEY, 0) else 0
