"""The methods of the admin client about configs, quotas, records and the cluster itself.

Each imports its module: other commands do not load it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kgctl.client.admin.operation import Operations, operation
from kgctl.client.net.steps import Steps

if TYPE_CHECKING:
    from kgctl.client.admin.browse import Browsed, Where
    from kgctl.client.admin.configs import OwnValue, Resource
    from kgctl.client.admin.quotas import Entity
    from kgctl.client.admin.record_deletions import Cut
    from kgctl.client.admin.stored_topics import Stored
    from kgctl.client.net.errors import KgctlError
    from kgctl.model.browsed import LogBounds
    from kgctl.model.clients import ClientMetric, ClientRows
    from kgctl.model.cluster_rows import ApiRow, BrokerRow, FeatureRow, LogDirRow
    from kgctl.model.configs import ConfigChange, ConfigRow, TopicAlteration
    from kgctl.model.failure import RowError
    from kgctl.model.features import FeatureChange
    from kgctl.model.items import StoredTopic
    from kgctl.model.peek import PeekRow
    from kgctl.model.quotas import QuotaChange, QuotaRow
    from kgctl.model.record_deletions import RecordDeletion
    from kgctl.model.topic_partition import TopicPartition


class ResourceAdmin(Operations):
    """See Admin."""

    @operation
    def resources_of(self, kind: str) -> Steps[list[Resource]]:
        from kgctl.client.admin import configs

        return configs.resources_of(self.cluster, kind)

    @operation
    def describe_configs(
        self, resources: Sequence[Resource], names: Sequence[str] = (), *, all_of_them: bool = False
    ) -> Steps[list[ConfigRow]]:
        from kgctl.client.admin import configs

        return configs.describe_configs(self.cluster, resources, names, all_of_them=all_of_them)

    @operation
    def own_configs(
        self, resources: Sequence[Resource], names: Sequence[str] = ()
    ) -> Steps[dict[Resource, dict[str, OwnValue] | KgctlError]]:
        from kgctl.client.admin import configs

        return configs.own_configs(self.cluster, resources, names)

    @operation
    def stored_topics(self, names: Sequence[str]) -> Steps[Stored]:
        from kgctl.client.admin import stored_topics

        return stored_topics.stored_topics(self.cluster, names)

    @operation
    def log_ends(self, topics: Sequence[StoredTopic]) -> Steps[dict[str, int | None]]:
        from kgctl.client.admin import stored_topics

        return stored_topics.log_ends(self.cluster, topics)

    @operation
    def plan_configs(
        self, resources: Sequence[Resource], changes: Mapping[str, str | None]
    ) -> Steps[list[ConfigChange]]:
        from kgctl.client.admin import configs

        return configs.plan_configs(self.cluster, resources, changes)

    @operation
    def change_configs(self, plan: Sequence[ConfigChange]) -> Steps[list[ConfigChange]]:
        from kgctl.client.admin import configs

        return configs.change_configs(self.cluster, plan)

    @operation
    def plan_topic_alterations(
        self, names: Sequence[str], partitions: int | None, configs: Mapping[str, str | None]
    ) -> Steps[list[TopicAlteration]]:
        from kgctl.client.admin import topic_alterations

        return topic_alterations.plan_alterations(self.cluster, names, partitions, configs)

    @operation
    def alter_topics(self, plan: Sequence[TopicAlteration]) -> Steps[list[TopicAlteration]]:
        from kgctl.client.admin import topic_alterations

        return topic_alterations.alter_topics(self.cluster, plan)

    @operation
    def plan_record_deletion(self, cuts: Sequence[Cut]) -> Steps[tuple[list[RecordDeletion], list[RowError]]]:
        from kgctl.client.admin import record_deletions

        return record_deletions.plan_record_deletion(self.cluster, cuts)

    @operation
    def delete_records(self, plan: Sequence[RecordDeletion]) -> Steps[list[RecordDeletion]]:
        from kgctl.client.admin import record_deletions

        return record_deletions.delete_records(self.cluster, plan)

    @operation
    def peek(
        self, group: str, topics: Mapping[str, tuple[int, ...] | None], before: int, after: int
    ) -> Steps[list[PeekRow]]:
        from kgctl.client.admin import peek

        return peek.peek(self.cluster, group, topics, before, after)

    @operation
    def browse(self, key: TopicPartition, where: Where, before: int, after: int) -> Steps[Browsed]:
        from kgctl.client.admin import browse

        return browse.browse(self.cluster, key, where, before, after)

    @operation
    def log_bounds(self, key: TopicPartition, group: str | None = None) -> Steps[LogBounds]:
        from kgctl.client.admin import browse

        return browse.bounds(self.cluster, key, group)

    @operation
    def list_quotas(self, entity: Entity, *, strict: bool = False) -> Steps[list[QuotaRow]]:
        from kgctl.client.admin import quotas

        return quotas.list_quotas(self.cluster, entity, strict=strict)

    @operation
    def plan_quotas(self, entity: Entity, values: Mapping[str, float]) -> Steps[list[QuotaChange]]:
        from kgctl.client.admin import quotas

        return quotas.plan_quotas(self.cluster, entity, values)

    @operation
    def plan_quota_removal(self, entity: Entity, names: Sequence[str]) -> Steps[list[QuotaChange]]:
        from kgctl.client.admin import quotas

        return quotas.plan_quota_removal(self.cluster, entity, names)

    @operation
    def change_quotas(self, entity: Entity, plan: Sequence[QuotaChange]) -> Steps[list[QuotaChange]]:
        from kgctl.client.admin import quotas

        return quotas.change_quotas(self.cluster, entity, plan)

    @operation
    def clients(self) -> Steps[ClientRows]:
        from kgctl.client.admin import clients

        return clients.clients(self.cluster)

    @operation
    def client_metrics(self, names: Sequence[str] = ()) -> Steps[list[ClientMetric]]:
        from kgctl.client.admin import telemetry

        return telemetry.client_metrics(self.cluster, names)

    @operation
    def describe_cluster(self) -> Steps[tuple[list[BrokerRow], list[RowError]]]:
        from kgctl.client.admin import cluster_rows

        return cluster_rows.describe_cluster(self.cluster)

    @operation
    def features(self) -> Steps[list[FeatureRow]]:
        from kgctl.client.admin import cluster_rows

        return cluster_rows.features(self.cluster)

    @operation
    def plan_features(self, levels: Mapping[str, int], downgrade: int | None = None) -> Steps[list[FeatureChange]]:
        from kgctl.client.admin import features

        return features.plan_features(self.cluster, levels, downgrade)

    @operation
    def change_features(
        self, plan: Sequence[FeatureChange], downgrade: int | None = None
    ) -> Steps[list[FeatureChange]]:
        from kgctl.client.admin import features

        return features.change_features(self.cluster, plan, downgrade)

    @operation
    def api_versions(self) -> Steps[list[ApiRow]]:
        from kgctl.client.admin import cluster_rows

        return cluster_rows.api_versions(self.cluster)

    @operation
    def log_dirs(self) -> Steps[list[LogDirRow]]:
        from kgctl.client.admin import cluster_rows

        return cluster_rows.log_dirs(self.cluster)
