"""One module per family of requests; each declares its requests in `REQUESTS`, beside their handlers.

This index says which module declares which api keys, so that a module loads at the first request of its family. ApiVersions
advertises the keys of the index in the versions that their messages declare.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.server.declaration import Declaration

_FAMILIES = {
    "produce": (0,),
    "fetch": (1,),
    "list_offsets": (2, 23),
    "metadata": (3,),
    "groups": (8, 9, 11, 12, 13, 14, 15, 16, 42, 47, 10000, 10001),
    "consumer_groups": (68, 69),
    "share_groups": (76, 77, 90, 91, 92),
    "find_coordinator": (10,),
    "sasl": (17, 36),
    "api_versions": (18,),
    "topics": (19, 20, 37),
    "delete_records": (21,),
    "init_producer_id": (22,),
    "transactions": (24, 25, 26, 65, 66),
    "write_txn_markers": (27,),
    "transaction_offsets": (28,),
    "acls": (29, 30, 31),
    "describe_configs": (32,),
    "alter_configs": (33, 44),
    "client_quotas": (48, 49),
    "features": (57,),
    "cluster": (35, 60, 10002),
    "clients": (10003,),
    "telemetry": (71, 72, 10004),
    "scram_credentials": (50, 51),
    "list_config_resources": (74,),
    "describe_producers": (61,),
    "describe_topic_partitions": (75,),
    "share_fetch": (78,),
    "share_acknowledge": (79,),
}
_MODULES = {key: module for module, keys in _FAMILIES.items() for key in keys}
SERVED_KEYS = tuple(sorted(_MODULES))


def declarations_of(module: str) -> tuple[Declaration, ...]:
    """The requests that one handler module declares."""
    declared: tuple[Declaration, ...] = import_module(f"{__name__}.{module}").REQUESTS
    return declared


def find_declaration(key: int) -> Declaration | None:
    """The declaration of an api key; None if the broker does not serve it."""
    module = _MODULES.get(key)
    if module is None:
        return None
    return next(declared for declared in declarations_of(module) if key == declared.request.API_KEY)
