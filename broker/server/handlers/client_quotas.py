"""DescribeClientQuotas and AlterClientQuotas."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from broker.protocol.acls import Operation
from broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from broker.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from broker.security.quotas.entities import Entity, Filter, QuotaRefused, entity_of
from broker.security.quotas.quotas import Change
from broker.server.declaration import FEWER_ENTRIES, Declaration
from broker.server.guards import DENIALS, on_cluster

if TYPE_CHECKING:
    from broker.protocol.errors import ErrorCode
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

_Asked = AlterClientQuotasRequest
_Found = DescribeClientQuotasResponse


def describe_client_quotas(
    request: DescribeClientQuotasRequest, exchange: Exchange, resources: Resources
) -> DescribeClientQuotasResponse:
    components = [(wanted.entity_type, wanted.match_type, wanted.match) for wanted in request.components]
    try:
        found = resources.throttle.quotas.describe(Filter(components, strict=request.strict))
    except QuotaRefused as refused:
        return _refuse_to_describe(request, refused.code, str(refused))
    entries = [
        _Found.Entry(
            entity=[_Found.Entity(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[_Found.Value(key=key, value=value) for key, value in sorted(values.items())],
        )
        for entity, values in found
    ]
    # Without an error Kafka sends an empty message here, not null.
    return DescribeClientQuotasResponse(error_message="", entries=entries)


def alter_client_quotas(
    request: AlterClientQuotasRequest, exchange: Exchange, resources: Resources
) -> AlterClientQuotasResponse:
    changes = [
        Change(_entity(entry), [(op.key, None if op.remove else op.value) for op in entry.ops])
        for entry in request.entries
    ]
    outcomes = resources.throttle.alter(changes, is_address, check=request.validate_only)
    return AlterClientQuotasResponse(
        entries=[
            _row(entity, refusal.code, str(refusal)) if refusal is not None else _row(entity)
            for entity, refusal in outcomes
        ]
    )


def is_address(host: str) -> bool:
    """Whether the text is an IP address or localhost. Other names are not looked up: that could stall all clients."""
    if host == "localhost":
        return True
    try:
        socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return False
    return True


def _entity(entry: AlterClientQuotasRequest.Entry) -> Entity:
    return entity_of((part.entity_type, part.entity_name) for part in entry.entity)


def _row(entity: Entity, code: int = 0, message: str | None = None) -> AlterClientQuotasResponse.Entry:
    parts = [AlterClientQuotasResponse.Entity(entity_type=kind, entity_name=name) for kind, name in entity]
    return AlterClientQuotasResponse.Entry(error_code=code, error_message=message, entity=parts)


def _refuse_to_describe(
    request: DescribeClientQuotasRequest, code: ErrorCode, message: str | None = None
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)


def _refuse_to_alter(request: AlterClientQuotasRequest, code: ErrorCode) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(entries=[_row(_entity(entry), code, DENIALS[code]) for entry in request.entries])


REQUESTS = (
    Declaration(
        DescribeClientQuotasRequest,
        describe_client_quotas,
        on_cluster(Operation.DESCRIBE_CONFIGS, _refuse_to_describe),
        max_entries=FEWER_ENTRIES,
    ),
    Declaration(
        AlterClientQuotasRequest,
        alter_client_quotas,
        on_cluster(Operation.ALTER_CONFIGS, _refuse_to_alter),
        max_entries=FEWER_ENTRIES,
    ),
)
