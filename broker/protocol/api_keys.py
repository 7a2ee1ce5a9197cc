"""The table of requests: api key -> name, request, response; versions come from the declarations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from broker.light_named_tuples import NamedTuple
from broker.protocol.wire_types import Message

# Requests that are private to this broker start here, far above Kafka's keys.
NATIVE_FIRST_KEY = 10000


class Api(NamedTuple):
    """One kind of request. `versions` are those that can be read and written."""

    key: int
    name: str
    request: type[Message]
    response: type[Message]

    @property
    def versions(self) -> range:
        return self.request.VERSIONS

    @property
    def advertised_versions(self) -> range:
        """The versions in ApiVersions. They may start below `versions`; requests in those versions are refused."""
        return range(getattr(self.request, "ADVERTISED_SINCE", self.versions.start), self.versions.stop)

    def is_flexible(self, version: int) -> bool:
        """Whether the version has tagged fields, also in its headers."""
        return version >= self.request.FLEXIBLE_SINCE


# One module per API: a command that sends three kinds of requests loads only three modules.
_MODULES = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    29: "describe_acls",
    30: "create_acls",
    31: "delete_acls",
    32: "describe_configs",
    33: "alter_configs",
    35: "describe_log_dirs",
    36: "sasl_authenticate",
    37: "create_partitions",
    42: "delete_groups",
    44: "incremental_alter_configs",
    47: "offset_delete",
    48: "describe_client_quotas",
    49: "alter_client_quotas",
    50: "describe_user_scram_credentials",
    51: "alter_user_scram_credentials",
    57: "update_features",
    60: "describe_cluster",
    61: "describe_producers",
    65: "describe_transactions",
    66: "list_transactions",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    71: "get_telemetry_subscriptions",
    72: "push_telemetry",
    74: "list_config_resources",
    75: "describe_topic_partitions",
    76: "share_group_heartbeat",
    77: "share_group_describe",
    78: "share_fetch",
    79: "share_acknowledge",
    90: "describe_share_group_offsets",
    91: "alter_share_group_offsets",
    92: "delete_share_group_offsets",
    NATIVE_FIRST_KEY: "describe_group_details",
    NATIVE_FIRST_KEY + 1: "trigger_rebalance",
    NATIVE_FIRST_KEY + 2: "describe_broker",
    NATIVE_FIRST_KEY + 3: "describe_clients",
    NATIVE_FIRST_KEY + 4: "describe_telemetry",
}


class _Apis(Mapping[int, Api]):
    """Loads the module of an API at its first lookup."""

    def __init__(self) -> None:
        self._loaded: dict[int, Api] = {}

    def __getitem__(self, key: int) -> Api:
        found = self._loaded.get(key)
        if found is None:
            found = self._loaded[key] = _load(key)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)

    def __contains__(self, key: object) -> bool:
        return key in _MODULES


def _load(key: int) -> Api:
    module = import_module(f"broker.protocol.messages.{_MODULES[key]}")
    name = "".join(word.capitalize() for word in _MODULES[key].split("_"))
    return Api(key, name, getattr(module, f"{name}Request"), getattr(module, f"{name}Response"))


APIS: Mapping[int, Api] = _Apis()
