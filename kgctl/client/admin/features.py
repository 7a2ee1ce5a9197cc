"""Changes the finalized levels of features (KIP-584, KIP-778)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.light_dataclasses import replace
from broker.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kgctl.client.admin.cluster_rows import features
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError, Precondition, TimedOut
from kgctl.client.net.read_only import ReadOnly
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.changes import DONE, FAILED, PLANNED
from kgctl.model.features import FeatureChange

# The upgrade types of UpdateFeatures.
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def plan_features(
    cluster: Cluster, levels: Mapping[str, int], downgrade: int | None = None
) -> Steps[list[FeatureChange]]:
    """The levels to set; `downgrade` is the upgrade type of those that become lower. The cluster checks them without a change."""
    present = {row.feature: row.level for row in (yield from features(cluster))}
    plan = [_planned(name, present.get(name), level, downgrade) for name, level in levels.items()]
    try:
        checked = yield from change_features(cluster, plan, downgrade, only_check=True)
    except ReadOnly:
        return plan
    return [replace(row, status=PLANNED) if row.status == DONE else row for row in checked]


def _planned(name: str, old: int | None, new: int, downgrade: int | None) -> FeatureChange:
    if old == new:
        return FeatureChange(name, old, new, "same")
    if old is not None and new < old and downgrade is None:
        reason = (
            f"feature {name!r} has level {old}: add --downgrade to lower it to {new}, or --unsafe-downgrade if metadata may"
            " be lost"
        )
        return FeatureChange(name, old, new, FAILED, Precondition(reason).as_row())
    return FeatureChange(name, old, new)


def change_features(
    cluster: Cluster, plan: Sequence[FeatureChange], downgrade: int | None = None, *, only_check: bool = False
) -> Steps[list[FeatureChange]]:
    """Set all levels of the plan in one request: all are set or none. Ends when the brokers report them."""
    changes = [row for row in plan if row.status == PLANNED]
    if not changes:
        return list(plan)
    about = ", ".join(f"{row.feature}={row.new_level}" for row in changes)
    request = UpdateFeaturesRequest(
        feature_updates=[
            UpdateFeaturesRequest.Update(
                feature=row.feature,
                max_version_level=row.new_level,
                upgrade_type=downgrade if downgrade and row.new_level < (row.old_level or 0) else UPGRADE,
            )
            for row in changes
        ],
        validate_only=only_check,
    )

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [
            Batch(
                Ask(node.endpoint, request, UpdateFeaturesResponse, 1),
                names,
                lambda answer: {about: _error(about, answer)},
            )
        ]

    error = (yield from cluster.at_controller([about], make))[about]
    if isinstance(error, ReadOnly) and only_check:
        raise error
    if error is None and not only_check:
        yield from _wait_until_known(cluster, {row.feature: row.new_level for row in changes})
    return [_outcome(row, error) if row.status == PLANNED else row for row in plan]


def _wait_until_known(cluster: Cluster, levels: Mapping[str, int]) -> Steps[None]:
    """A controller answers before the brokers have the new level."""
    for wait in cluster.retry_waits:
        known = {row.feature: row.level for row in (yield from features(cluster))}
        if all(known.get(name) == level for name, level in levels.items()):
            return
        try:
            yield Pause(wait, "the brokers do not report the new level yet")
        except TimedOut:
            return


def _outcome(row: FeatureChange, error: KgctlError | None) -> FeatureChange:
    return replace(row, status=FAILED, error=error.as_row()) if error else replace(row, status=DONE)


def _error(about: str, answer: UpdateFeaturesResponse) -> BrokerError | None:
    """Before version 2 there may be an error of a single feature."""
    asked = Asked(UpdateFeaturesRequest)
    if answer.error_code:
        return BrokerError(answer.error_code, about, answer.error_message, asked=asked)
    failed = next((row for row in answer.results if row.error_code), None)
    return BrokerError(failed.error_code, about, failed.error_message, asked=asked) if failed else None
