"""UpdateFeatures: change the finalized levels of features, with the answers of Kafka's FeatureControlManager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from broker.server.declaration import Declaration
from broker.server.features import SHARE_VERSION, has_share_groups, level_of, why_not
from broker.server.guards import on_cluster
from broker.storage import SHARE_STATE_TOPIC

if TYPE_CHECKING:
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources


def update_features(request: UpdateFeaturesRequest, exchange: Exchange, resources: Resources) -> UpdateFeaturesResponse:
    """All updates succeed or fail together. Of several updates of one feature, the last counts, as in Kafka.

    Version 0 upgrades only: Kafka ignores `allow_downgrade`.
    """
    log = resources.log
    updates = {update.feature: update for update in request.feature_updates}
    for name, update in updates.items():
        reason = why_not(log, resources.node_id, name, update.max_version_level, update.upgrade_type)
        if reason is not None:
            return UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                error_message="The update failed for all features since the following feature had an error: "
                f"Invalid update version {update.max_version_level} for feature {name}. {reason}",
            )
    if not request.validate_only:
        for name, update in updates.items():
            if update.max_version_level != level_of(log, name):
                log.set_feature_level(name, update.max_version_level)
                if name == SHARE_VERSION and not has_share_groups(log) and SHARE_STATE_TOPIC in log.topics:
                    resources.shares.disabled()
    # Kafka's message of a success is "NONE".
    results = [
        UpdateFeaturesResponse.Result(feature=update.feature, error_message="NONE")
        for update in request.feature_updates
    ]
    return UpdateFeaturesResponse(results=results)


def _refused(request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=code, error_message=code.meaning)


REQUESTS = (Declaration(UpdateFeaturesRequest, update_features, on_cluster(Operation.ALTER, _refused)),)
