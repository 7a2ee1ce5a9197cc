"""InitProducerId: ids for idempotent producers, and for transactional ones, which the coordinator of transactions gives out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker.server.declaration import Declaration
from broker.server.guards import PASS, Acl, Guard, Refused, Verdict

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources


def init_producer_id(
    request: InitProducerIdRequest, exchange: Exchange, resources: Resources
) -> InitProducerIdResponse | None:
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)
    if request.transactional_id is None:
        return InitProducerIdResponse(producer_id=resources.log.next_producer_id(), producer_epoch=0)
    exchange.connection.session.client.use_transactional_id(request.transactional_id)
    resources.transactions.submit(request, exchange)
    return None


def _check(request: InitProducerIdRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    transactional_id = request.transactional_id
    if transactional_id is not None:
        allowed = access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    else:
        # KIP-679: whoever may write to any topic may write idempotently.
        allowed = access.allows_on_cluster(Operation.IDEMPOTENT_WRITE) or access.allows_any_of_type(
            Operation.WRITE, ResourceType.TOPIC
        )
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return PASS if allowed else Refused(InitProducerIdResponse(error_code=code, producer_epoch=-1))


REQUESTS = (
    Declaration(
        InitProducerIdRequest,
        init_producer_id,
        Guard(
            _check,
            Acl(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER),
            Acl(Operation.WRITE, ResourceType.TOPIC),
            Acl(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
        ),
    ),
)
