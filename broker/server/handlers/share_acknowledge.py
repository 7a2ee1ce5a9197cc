"""ShareAcknowledge (KIP-932): end the acquisition of records. ShareFetch does the same before it reads, and has the same guard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.cores.share.acknowledgement import Acknowledgement
from broker.cores.share.partition import Refusal
from broker.cores.share.sessions import FINAL_EPOCH, SessionKey, TopicIdPartition
from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from broker.protocol.share_state import SharePartitionKey
from broker.server.declaration import Declaration
from broker.server.features import has_share_groups
from broker.server.guards import PASS, Acl, Guard, Refused, Verdict

if TYPE_CHECKING:
    from broker.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
    from broker.protocol.wire_types import Message
    from broker.server.access import Access
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources
    from broker.storage import Topic

READ_GROUP = Acl(Operation.READ, ResourceType.GROUP)
READ_TOPIC = Acl(Operation.READ, ResourceType.TOPIC)
GROUP_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
MOST_TYPE = 3


def share_acknowledge(request: ShareAcknowledgeRequest, exchange: Exchange, resources: Resources) -> Message | None:
    if not has_share_groups(resources.log):
        return ShareAcknowledgeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if request.group_id is None or request.member_id is None:
        return ShareAcknowledgeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    shares = resources.shares
    key = SessionKey(request.group_id, request.member_id)
    error = shares.sessions.acknowledge(key, request.share_session_epoch)
    if error:
        return ShareAcknowledgeResponse(error_code=error)
    topics: dict[bytes, ShareAcknowledgeResponse.Topic] = {}
    for (topic_id, index), refusal in acknowledged(request, exchange, resources).items():
        topic = topics.setdefault(topic_id, ShareAcknowledgeResponse.Topic(topic_id=topic_id, partitions=[]))
        row = ShareAcknowledgeResponse.Partition(
            partition_index=index, current_leader=ShareAcknowledgeResponse.CurrentLeader()
        )
        if refusal is not None:
            row.error_code, row.error_message = refusal.code, refusal.message
        topic.partitions.append(row)
    if request.share_session_epoch == FINAL_EPOCH:
        shares.close_session(key)
    return ShareAcknowledgeResponse(responses=list(topics.values()))


def acknowledged(
    request: ShareFetchRequest | ShareAcknowledgeRequest, exchange: Exchange, resources: Resources
) -> dict[TopicIdPartition, Refusal | None]:
    """Acknowledge, for each partition all or nothing. As in Kafka, empty ones are answered only beside others."""
    assert request.group_id is not None
    assert request.member_id is not None
    may = resources.access(exchange.connection).of(*READ_TOPIC)
    found: dict[TopicIdPartition, Refusal | None] = {}
    empty: list[TopicIdPartition] = []
    is_any = False
    for topic in request.topics:
        known = resources.log.topic_by_id(topic.topic_id)
        for partition in topic.partitions:
            key = TopicIdPartition(topic.topic_id, partition.partition_index)
            given = [
                Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                for batch in partition.acknowledgement_batches
            ]
            refusal = _refusal(known, key, given, may, resources)
            if refusal is not None:
                found[key] = refusal
            elif not given:
                empty.append(key)
            else:
                is_any = True
                share_key = SharePartitionKey(request.group_id, *key)
                found[key] = resources.shares.acknowledge(share_key, request.member_id, given)
    if is_any:
        found.update((key, None) for key in empty if key not in found)
    return found


def _refusal(
    topic: Topic | None, key: TopicIdPartition, given: list[Acknowledgement], may: Any, resources: Resources
) -> Refusal | None:
    """Why acknowledgements are not tried."""
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    if not _is_valid(given):
        return Refusal(ErrorCode.INVALID_REQUEST, _INVALID)
    if not may[topic.name]:
        return Refusal(TOPIC_DENIED, "Topic authorization failed.")
    if not 0 <= key.partition < topic.partition_count:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    return None


_INVALID = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)


def _is_valid(given: list[Acknowledgement]) -> bool:
    """In order, with one type for all offsets or one for each."""
    before = -1
    for first, last, types in given:
        if first > last or first < before or not types:
            return False
        if len(types) > 1 and last - first != len(types) - 1:
            return False
        if not all(0 <= type_ <= MOST_TYPE for type_ in types):
            return False
        before = last
    return True


# ---- guards


def of_group(refusal: type[ShareFetchResponse] | type[ShareAcknowledgeResponse]) -> Guard:
    def check(request: Any, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
        if not has_share_groups(resources.log) or access.allows(*READ_GROUP, request.group_id or ""):
            return PASS
        return Refused(refusal(error_code=GROUP_DENIED))

    # The partitions of a session are not in the request: the handlers ask for its topics.
    return Guard(check, READ_GROUP, READ_TOPIC)


REQUESTS = (Declaration(ShareAcknowledgeRequest, share_acknowledge, of_group(ShareAcknowledgeResponse)),)
