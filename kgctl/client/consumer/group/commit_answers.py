"""What an answer of OffsetCommit means for the commit and for the membership."""

from __future__ import annotations

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kgctl.client.consumer.group.errors import CommitFailed, RebalanceInProgress, StaleEpoch
from kgctl.client.consumer.group.generation import NO_GENERATION, Generation, MemberState
from kgctl.client.consumer.group.link import MOVED
from kgctl.client.consumer.group.standing import Standing
from kgctl.client.net.authorization import Asked
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.model.topic_partition import TopicPartition

# From version 9 on, a group that is gone has a code of its own.
_GENERATION_ENDED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND})
# The first of another kind decides; those of this kind are collected.
_OF_A_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class CommitAnswers:
    def __init__(self, membership: Standing) -> None:
        self._membership = membership

    def error_of(self, answer: OffsetCommitResponse | KgctlError, sent: Generation) -> KgctlError | None:
        """The error of the commit, None if all offsets are committed. Ends the generation if the coordinator says so."""
        if isinstance(answer, KgctlError):
            return answer
        refused: KgctlError | None = None
        for topic in answer.topics:
            for row in topic.partitions:
                if row.error_code == _OF_A_TOPIC:
                    about = f"commit of {TopicPartition(topic.name, row.partition_index)}"
                    refused = refused or BrokerError(
                        row.error_code, about, asked=Asked(OffsetCommitRequest, topic=topic.name)
                    )
                elif row.error_code:
                    return self._error(row.error_code, TopicPartition(topic.name, row.partition_index), sent)
        return refused

    def _error(self, code: int, partition: TopicPartition, sent: Generation) -> KgctlError:
        membership = self._membership
        error = BrokerError(
            code,
            f"commit of {partition}",
            asked=Asked(OffsetCommitRequest, membership.settings.group_id, partition.topic),
            by_leader=True,  # a new topic: its metadata may not have reached the coordinator
        )
        if code in MOVED or code == ErrorCode.REQUEST_TIMED_OUT:
            membership.link.lose(error.name)
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            if membership.generation == sent:
                return membership.refusal(code, OffsetCommitRequest)
            return self._stale(error)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            membership.request_rejoin("offset commit failed since group is already rebalancing")
            return RebalanceInProgress(
                "the group is rebalancing: nothing was committed; call poll until it is done, then commit what is assigned"
            )
        elif code == ErrorCode.STALE_MEMBER_EPOCH:
            # The epoch of the next attempt is newer, if the heartbeat that brought it was answered before.
            return StaleEpoch(error) if membership.generation != sent else CommitFailed(_REMOVED.format(error.name))
        elif sent == NO_GENERATION and code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            return CommitFailed(
                f"group {membership.settings.group_id!r} has active members, so it takes no offsets of a consumer that"
                f" assigns its partitions itself ({error.name}); stop the members, or use another group"
            )
        elif code in _GENERATION_ENDED:
            if membership.generation != sent and membership.state is MemberState.PREPARING:
                return self._stale(error)
            forget = code != ErrorCode.ILLEGAL_GENERATION  # which leaves the member id valid
            membership.reset_after_refusal(error.name, "OffsetCommit", forget_member_id=forget)
            return CommitFailed(_REMOVED.format(error.name))
        return error

    def _stale(self, error: BrokerError) -> KgctlError:
        """The commit was sent in a generation that has ended."""
        if self._membership.state is MemberState.PREPARING:
            return RebalanceInProgress(
                "the commit is of an ended generation, and the group is rebalancing; call poll until it is done, then"
                " commit what is assigned"
            )
        return CommitFailed(_REMOVED.format(error.name))


_REMOVED = (
    "the group has rebalanced and its partitions may belong to other members ({}): the time between polls was longer than"
    " max.poll.interval.ms, or the session timed out; process fewer records per poll (max.poll.records) or raise"
    " max.poll.interval.ms"
)
