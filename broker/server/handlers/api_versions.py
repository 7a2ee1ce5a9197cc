"""ApiVersions: derived from the declared requests, the versions of their messages, and the features."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from broker.protocol.api_keys import APIS
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.server.declaration import Declaration
from broker.server.features import SUPPORTED, level_of
from broker.server.guards import OPEN
from broker.server.handlers import SERVED_KEYS

if TYPE_CHECKING:
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

# KIP-511: the valid names and versions of client software.
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# Without a subscription to metrics, clients need not ask for theirs: librdkafka logs a line about each answer.
_TELEMETRY = (71, 72)


def api_versions(request: ApiVersionsRequest, exchange: Exchange, resources: Resources) -> ApiVersionsResponse:
    if exchange.version < 0:
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_range(ApiVersionsRequest.API_KEY)]
        )
    if exchange.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    session = exchange.connection.session
    session.client.run(request.client_software_name, request.client_software_version)
    gate = session.gate
    if gate is not None:
        gate.versions_answered()
    log = resources.log
    return ApiVersionsResponse(
        api_keys=[_range(key) for key in SERVED_KEYS if key not in _TELEMETRY or resources.has_client_metrics()],
        supported_features=[
            ApiVersionsResponse.SupportedFeature(name=name, min_version=feature.least, max_version=feature.most)
            for name, feature in SUPPORTED.items()
            # Older clients cannot read a minimum of 0 (KAFKA-17011).
            if feature.least > 0 or exchange.version >= 4
        ],
        finalized_features_epoch=log.feature_epoch,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeature(name=name, max_version_level=level, min_version_level=level)
            for name in SUPPORTED
            if (level := level_of(log, name)) > 0
        ],
    )


def _range(key: int) -> ApiVersionsResponse.ApiKey:
    versions = APIS[key].advertised_versions
    return ApiVersionsResponse.ApiKey(api_key=key, min_version=versions.start, max_version=versions.stop - 1)


# Open to every client, before it has authenticated.
REQUESTS = (Declaration(ApiVersionsRequest, api_versions, OPEN),)
