"""Which topics the metadata of a consumer follows."""

from __future__ import annotations

from kgctl.client.consumer.subscription import SubscriptionState, SubscriptionType
from kgctl.client.network.metadata import Metadata


def want_topics(metadata: Metadata, subscription: SubscriptionState) -> None:
    """Call this after each change of the subscription."""
    if subscription.type in (SubscriptionType.PATTERN, SubscriptionType.BROKER_PATTERN):
        metadata.want_all()
    else:
        metadata.want_only(subscription.metadata_topics)
