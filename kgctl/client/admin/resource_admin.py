"""The methods of the admin client about configs, quotas, records and the cluster itself.

Each imports its module: other commands do not load it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kgctl.client.admin.session import Session

if TYPE_CHECKING:
    from kgctl.client.admin.browse import Browsed, Where
    from kgctl.client.admin.configs import OwnValue, Resource
    from kgctl.client.admin.quotas import Entity
    from kgctl.client.admin.record_deletions import Cut
    from kgctl.client.admin.stored_topics import Stored
    from kgctl.client.net.errors import KgctlError
    from kgctl.model.browsed import LogBounds
    from kgctl.model.cluster_rows import ApiRow, BrokerRow, FeatureRow, LogDirRow
    from kgctl.model.configs import ConfigChange, ConfigRow, TopicAlteration
    from kgctl.model.failure import RowError
    from kgctl.model.items import StoredTopic
    from kgctl.model.peek import PeekRow
    from kgctl.model.quotas import QuotaChange, QuotaRow
    from kgctl.model.record_deletions import RecordDeletion
    from kgctl.model.topic_partition import TopicPartition


class ResourceAdmin(Session):
    """See Admin."""

    def resources_of(self, kind: str) -> list[Resource]:
        from kgctl.client.admin import configs

        return self.run(configs.resources_of(self.cluster, kind))

    def describe_configs(
        self, resources: Sequence[Resource], names: Sequence[str] = (), *, all_of_them: bool = False
    ) -> list[ConfigRow]:
        from kgctl.client.admin import configs

        return self.run(configs.describe_configs(self.cluster, resources, names, all_of_them=all_of_them))

    def own_configs(
        self, resources: Sequence[Resource], names: Sequence[str] = ()
    ) -> dict[Resource, dict[str, OwnValue] | KgctlError]:
        from kgctl.client.admin import configs

        return self.run(configs.own_configs(self.cluster, resources, names))

    def stored_topics(self, names: Sequence[str]) -> Stored:
        from kgctl.client.admin import stored_topics

        return self.run(stored_topics.stored_topics(self.cluster, names))

    def log_ends(self, topics: Sequence[StoredTopic]) -> dict[str, int | None]:
        from kgctl.client.admin import stored_topics

        return self.run(stored_topics.log_ends(self.cluster, topics))

    def plan_configs(self, resources: Sequence[Resource], changes: Mapping[str, str | None]) -> list[ConfigChange]:
        from kgctl.client.admin import configs

        return self.run(configs.plan_configs(self.cluster, resources, changes))

    def change_configs(self, plan: Sequence[ConfigChange]) -> list[ConfigChange]:
        from kgctl.client.admin import configs

        return self.run(configs.change_configs(self.cluster, plan))

    def plan_topic_alterations(
        self, names: Sequence[str], partitions: int | None, configs: Mapping[str, str | None]
    ) -> list[TopicAlteration]:
        from kgctl.client.admin import topic_alterations

        return self.run(topic_alterations.plan_alterations(self.cluster, names, partitions, configs))

    def alter_topics(self, plan: Sequence[TopicAlteration]) -> list[TopicAlteration]:
        from kgctl.client.admin import topic_alterations

        return self.run(topic_alterations.alter_topics(self.cluster, plan))

    def plan_record_deletion(self, cuts: Sequence[Cut]) -> tuple[list[RecordDeletion], list[RowError]]:
        from kgctl.client.admin import record_deletions

        return self.run(record_deletions.plan_record_deletion(self.cluster, cuts))

    def delete_records(self, plan: Sequence[RecordDeletion]) -> list[RecordDeletion]:
        from kgctl.client.admin import record_deletions

        return self.run(record_deletions.delete_records(self.cluster, plan))

    def peek(self, group: str, topics: Mapping[str, tuple[int, ...] | None], before: int, after: int) -> list[PeekRow]:
        from kgctl.client.admin import peek

        return self.run(peek.peek(self.cluster, group, topics, before, after))

    def browse(self, key: TopicPartition, where: Where, before: int, after: int) -> Browsed:
        from kgctl.client.admin import browse

        return self.run(browse.browse(self.cluster, key, where, before, after))

    def log_bounds(self, key: TopicPartition, group: str | None = None) -> LogBounds:
        from kgctl.client.admin import browse

        return self.run(browse.bounds(self.cluster, key, group))

    def list_quotas(self, entity: Entity, *, strict: bool = False) -> list[QuotaRow]:
        from kgctl.client.admin import quotas

        return self.run(quotas.list_quotas(self.cluster, entity, strict=strict))

    def plan_quotas(self, entity: Entity, values: Mapping[str, float]) -> list[QuotaChange]:
        from kgctl.client.admin import quotas

        return self.run(quotas.plan_quotas(self.cluster, entity, values))

    def plan_quota_removal(self, entity: Entity, names: Sequence[str]) -> list[QuotaChange]:
        from kgctl.client.admin import quotas

        return self.run(quotas.plan_quota_removal(self.cluster, entity, names))

    def change_quotas(self, entity: Entity, plan: Sequence[QuotaChange]) -> list[QuotaChange]:
        from kgctl.client.admin import quotas

        return self.run(quotas.change_quotas(self.cluster, entity, plan))

    def describe_cluster(self) -> tuple[list[BrokerRow], list[RowError]]:
        from kgctl.client.admin import cluster_rows

        return self.run(cluster_rows.describe_cluster(self.cluster))

    def features(self) -> list[FeatureRow]:
        from kgctl.client.admin import cluster_rows

        return self.run(cluster_rows.features(self.cluster))

    def api_versions(self) -> list[ApiRow]:
        from kgctl.client.admin import cluster_rows

        return self.run(cluster_rows.api_versions(self.cluster))

    def log_dirs(self) -> list[LogDirRow]:
        from kgctl.client.admin import cluster_rows

        return self.run(cluster_rows.log_dirs(self.cluster))
