"""Features: what clients may rely on, each with a finalized level that an administrator can change (KIP-584).

Kafka has more of them. This broker lists only those that it supports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.light_named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.storage import Log

TRANSACTION_VERSION, SHARE_VERSION = "transaction.version", "share.version"
# The upgrade types of UpdateFeatures.
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class Feature(NamedTuple):
    """The levels that the broker supports, and the one that applies until an administrator sets another."""

    least: int
    most: int
    default: int


SUPPORTED: Mapping[str, Feature] = {TRANSACTION_VERSION: Feature(0, 2, 2), SHARE_VERSION: Feature(0, 1, 0)}


def level_of(log: Log, name: str) -> int:
    """The finalized level of a supported feature."""
    return log.feature_levels.get(name, SUPPORTED[name].default)


def has_share_groups(log: Log) -> bool:
    """Whether share groups are enabled (KIP-932)."""
    return level_of(log, SHARE_VERSION) > 0


def why_not(log: Log, node_id: int, name: str, level: int, upgrade_type: int) -> str | None:
    """Why a feature cannot get this level, in the words of Kafka's FeatureControlManager; None if it can."""
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    feature = SUPPORTED.get(name)
    if feature is None:
        return f"Local controller {node_id} does not support this feature." if level else f"Feature {name} not found."
    if not feature.least <= level <= feature.most:
        return f"Local controller {node_id} only supports versions {feature.least}-{feature.most}"
    current = level_of(log, name)
    if level < current and upgrade_type == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > current and upgrade_type != UPGRADE:
        return "Can't downgrade to a newer version."
    return None
