"""FindCoordinator: this broker coordinates every group and every transactional id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from broker.server.declaration import Declaration, Slicing
from broker.server.guards import DENIALS, PASS, Acl, Guard, Narrowed, Refused, Verdict, split

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.declaration import SliceHandler
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
# The first version with several keys.
KEYS_SINCE = 4
# The first version with the coordinators of share groups, for which only brokers ask.
SHARE_KEY_SINCE = 6


def find_coordinator(request: FindCoordinatorRequest, exchange: Exchange, resources: Resources) -> SliceHandler:
    address, node_id = exchange.connection.session.listener.advertised, resources.node_id

    def run(part: FindCoordinatorRequest, answerable: Answerable) -> FindCoordinatorResponse:
        return respond(part, answerable.version, node_id, address.host, address.port)

    return run


def respond(
    request: FindCoordinatorRequest, version: int, node_id: int, host: str, port: int
) -> FindCoordinatorResponse:
    """The answer of the broker at this address."""
    error, message = _lookup_error(request.key_type)
    if error:
        node_id, host, port = -1, "", -1
    if version < KEYS_SINCE:
        # Kafka's message is "NONE" in these versions where there is no error, and empty in later ones.
        return FindCoordinatorResponse(
            error_code=error, error_message=message or "NONE", node_id=node_id, host=host, port=port
        )
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key=key, node_id=node_id, host=host, port=port, error_code=error, error_message=message
            )
            for key in request.coordinator_keys
        ]
    )


def _lookup_error(key_type: int) -> tuple[ErrorCode, str]:
    if key_type in (GROUP_KEY, TRANSACTION_KEY):
        return ErrorCode.NONE, ""
    return ErrorCode.INVALID_REQUEST, f"key type {key_type} is not known"


def _itself(key: str) -> str:
    return key


def _check(request: FindCoordinatorRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    if request.key_type == SHARE_KEY and exchange.version >= SHARE_KEY_SINCE:
        return PASS if access.allows_on_cluster(Operation.CLUSTER_ACTION) else Refused(_share_refusal(request))
    denial = _DENIALS.get(request.key_type)
    if denial is None:
        return PASS
    kind, code = denial
    may = access.of(Operation.DESCRIBE, kind)
    if exchange.version < KEYS_SINCE:
        return PASS if may[request.key] else Refused(_refusal(code))
    request.coordinator_keys, denied = split(request.coordinator_keys, may.__getitem__)
    if not denied:
        return PASS

    def complete(response: FindCoordinatorResponse) -> FindCoordinatorResponse:
        response.coordinators += [_row(key, code, "") for key in denied]
        return response

    return Narrowed(request, complete)


def _share_refusal(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return FindCoordinatorResponse(coordinators=[_row(key, code, DENIALS[code]) for key in request.coordinator_keys])


def _row(key: str, code: ErrorCode, message: str) -> FindCoordinatorResponse.Coordinator:
    return FindCoordinatorResponse.Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
    )


def _refusal(code: ErrorCode) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(error_code=code, error_message=DENIALS[code], node_id=-1, host="", port=-1)


_DENIALS = {
    GROUP_KEY: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    TRANSACTION_KEY: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
REQUESTS = (
    Declaration(
        FindCoordinatorRequest,
        find_coordinator,
        Guard(
            _check,
            Acl(Operation.DESCRIBE, ResourceType.GROUP),
            Acl(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
            Acl(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
        ),
        Slicing("coordinator_keys", "coordinators", _itself, 10),
    ),
)
