"""What the broker does for each kind of request: one function each, called with request, exchange and resources.

The table is what ApiVersions advertises, in the versions that the messages declare. Modules load at first use.
"""

from __future__ import annotations

from broker.api.groups import GroupApi

HANDLERS = {
    0: "produce:produce",
    1: "fetch:fetch",
    2: "list_offsets:list_offsets",
    3: "metadata:metadata",
    18: "api_versions:api_versions",
    19: "topics:create_topics",
    20: "topics:delete_topics",
    21: "delete_records:delete_records",
    22: "init_producer_id:init_producer_id",
    23: "list_offsets:offset_for_leader_epoch",
    32: "describe_configs:describe_configs",
    33: "alter_configs:alter_configs",
    35: "cluster:describe_log_dirs",
    37: "topics:create_partitions",
    44: "alter_configs:incremental_alter_configs",
    60: "cluster:describe_cluster",
    75: "describe_topic_partitions:describe_topic_partitions",
    **dict.fromkeys(GroupApi.API_KEYS, "groups:group_request"),
}
