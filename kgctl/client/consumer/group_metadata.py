"""Who a consumer is in its group, at one moment."""

from __future__ import annotations

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadata:
    """Kafka's class of this name. A consumer that is not in a generation has generation -1 and no member id."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
