"""ApiVersions: derived from the table of handlers and the declarations of the messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from broker.protocol.api_keys import APIS
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.server.handlers import HANDLERS

if TYPE_CHECKING:
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

# KIP-511: what a client may call itself.
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(request: ApiVersionsRequest, exchange: Exchange, resources: Resources) -> ApiVersionsResponse:
    if exchange.version < 0:
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_range(ApiVersionsRequest.API_KEY)]
        )
    if exchange.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    return ApiVersionsResponse(api_keys=[_range(key) for key in sorted(HANDLERS)])


def _range(key: int) -> ApiVersionsResponse.ApiKey:
    versions = APIS[key].advertised_versions
    return ApiVersionsResponse.ApiKey(api_key=key, min_version=versions.start, max_version=versions.stop - 1)
