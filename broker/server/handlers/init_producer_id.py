"""InitProducerId: ids for idempotent producers. Transactions are not served; their clients get an error here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker.server.declaration import Declaration
from broker.server.guards import Acl, Guard, unwritten

if TYPE_CHECKING:
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

# Java's client and librdkafka fail at once on this error; most other errors they retry.
TRANSACTIONS_REFUSED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def init_producer_id(
    request: InitProducerIdRequest, exchange: Exchange, resources: Resources
) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        return InitProducerIdResponse(error_code=TRANSACTIONS_REFUSED, producer_epoch=-1)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=resources.log.next_producer_id(), producer_epoch=0)


REQUESTS = (
    Declaration(
        InitProducerIdRequest,
        init_producer_id,
        Guard(
            unwritten,
            Acl(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER),
            Acl(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
        ),
    ),
)
