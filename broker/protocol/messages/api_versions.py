"""ApiVersions: which requests the broker supports, in which versions."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT16, INT32, INT64, STRING, Message, Struct, wire


class ApiVersionsRequest(Message):
    """v3 adds the name and version of the client software (KIP-511)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 18, range(5), 3

    client_software_name: str = wire(STRING, default="", since=3)
    client_software_version: str = wire(STRING, default="", since=3)


class ApiVersionsResponse(Message):
    """v1 adds the throttle time; v3 adds features (KIP-584); v4 allows features to start at version 0.

    Its header is never flexible, so that a client of any age can read it.
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 18, range(5), 3

    class ApiKey(Struct):
        api_key: int = wire(INT16)
        min_version: int = wire(INT16)
        max_version: int = wire(INT16)

    class SupportedFeature(Struct):
        name: str = wire(STRING)
        min_version: int = wire(INT16)
        max_version: int = wire(INT16)

    class FinalizedFeature(Struct):
        name: str = wire(STRING)
        max_version_level: int = wire(INT16)
        min_version_level: int = wire(INT16)

    error_code: int = wire(INT16, default=0)
    api_keys: list[ApiKey] = wire(ARRAY(ApiKey))
    throttle_time_ms: int = wire(INT32, default=0, since=1)
    supported_features: list[SupportedFeature] = wire(ARRAY(SupportedFeature), default=[], since=3, tag=0)
    finalized_features_epoch: int = wire(INT64, default=-1, since=3, tag=1)
    finalized_features: list[FinalizedFeature] = wire(ARRAY(FinalizedFeature), default=[], since=3, tag=2)
    zk_migration_ready: bool = wire(BOOL, default=False, since=3, tag=3)
