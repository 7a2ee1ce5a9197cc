"""UpdateFeatures: change the finalized levels of features (KIP-584)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT8, INT16, INT32, STRING, Message, Struct, wire


class UpdateFeaturesRequest(Message):
    """v1 replaces `allow_downgrade` by the upgrade type, and adds `validate_only` (KIP-778)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 57, range(3), 0

    class Update(Struct):
        """Upgrade types: 1 upgrade, 2 safe downgrade, 3 unsafe downgrade."""

        feature: str = wire(STRING)
        max_version_level: int = wire(INT16)
        allow_downgrade: bool = wire(BOOL, default=False, until=0)
        upgrade_type: int = wire(INT8, default=1, since=1)

    timeout_ms: int = wire(INT32, default=60000)
    feature_updates: list[Update] = wire(ARRAY(Update))
    validate_only: bool = wire(BOOL, default=False, since=1)


class UpdateFeaturesResponse(Message):
    """v2 drops the results of single features: the update of all succeeds or fails as one."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 57, range(3), 0

    class Result(Struct):
        feature: str = wire(STRING)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    results: list[Result] = wire(ARRAY(Result), default=[], until=1)
