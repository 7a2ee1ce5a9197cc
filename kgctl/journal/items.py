"""Items of changes: what commands are about to change, with the values before, and which item a row is about.

Secrets never get here: a sensitive config keeps only that it was set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from broker.secret_names import is_secret
from kgctl.journal.command_lines import HIDDEN
from kgctl.model.items import (
    ABORT,
    ACL,
    CONFIG,
    CREATE,
    DELETE,
    FEATURE,
    PARTITIONS,
    QUOTA,
    RECORDS,
    SET,
    TOPIC,
    TRANSACTION,
    USER,
    Item,
    StoredTopic,
)

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.client.admin.configs import Resource
    from kgctl.client.net.cluster import Cluster
    from kgctl.client.net.steps import Steps
    from kgctl.model.acls import AclChange, AclRow
    from kgctl.model.configs import ConfigChange, TopicAlteration
    from kgctl.model.features import FeatureChange
    from kgctl.model.quotas import QuotaChange
    from kgctl.model.record_deletions import RecordDeletion
    from kgctl.model.transactions import TransactionAbort
    from kgctl.model.users import UserChange

EXISTS = "exists"
# The setting of a feature.
LEVEL = "level"
_PLANNED = "planned"
Key = tuple[Any, ...]


def topics_created(admin: Admin, names: Sequence[str]) -> list[Item]:
    """Says of those that exist already that they do: they must survive an undo."""
    found = admin.stored_topics(names)
    return [
        Item(TOPIC, CREATE, (name,), old=EXISTS if isinstance(found.get(name), StoredTopic) else None, new=EXISTS)
        for name in dict.fromkeys(names)
    ]


def with_ids(admin: Admin, items: Sequence[Item], failed: Collection[Key] = ()) -> list[Item]:
    """New topics with the ids that they got. Brokers show a topic a moment after its controller has created it; those that
    `failed` are not waited for."""
    from broker.light_dataclasses import replace

    names = [str(item.parts[0]) for item in items if item.kind == TOPIC]
    made = [str(item.parts[0]) for item in items if item.kind == TOPIC and item.key not in failed]
    found = admin.run(_shown(admin.cluster, names, made))
    return [
        replace(item, topic_id=topic.topic_id)
        if item.kind == TOPIC and isinstance(topic := found.get(str(item.parts[0])), StoredTopic)
        else item
        for item in items
    ]


def _shown(cluster: Cluster, names: Sequence[str], made: Sequence[str]) -> Steps[dict[str, Any]]:
    """The topics once all that were made are shown, or after some seconds."""
    from kgctl.client.admin.stored_topics import stored_topics
    from kgctl.client.net.errors import KgctlError
    from kgctl.client.net.steps import Pause

    def is_awaited(topic: StoredTopic | KgctlError | None) -> bool:
        return topic is None or (isinstance(topic, KgctlError) and topic.retriable)

    for wait in (*cluster.retry_waits, None):
        found = yield from stored_topics(cluster, names)
        if wait is None or not any(is_awaited(found.get(name)) for name in made):
            break
        yield Pause(wait, "a new topic is not shown yet")
    return found


def topics_deleted(admin: Admin, names: Sequence[str]) -> list[Item]:
    found = admin.stored_topics(names)
    topics = ((name, found.get(name)) for name in dict.fromkeys(names))
    return [_deleted(name, topic if isinstance(topic, StoredTopic) else None) for name, topic in topics]


def _deleted(name: str, topic: StoredTopic | None) -> Item:
    if topic is None:
        return Item(TOPIC, DELETE, (name,), old=EXISTS, is_kept=False)
    return Item(
        TOPIC,
        DELETE,
        (name,),
        old=EXISTS,
        is_kept=topic.configs is not None,
        topic_id=topic.topic_id,
        partitions=topic.partitions,
        replicas=topic.replicas,
        configs=topic.configs or (),
    )


def topics_altered(admin: Admin, rows: Iterable[TopicAlteration]) -> list[Item]:
    from kgctl.client.admin.configs import TOPIC as TOPIC_CONFIG
    from kgctl.client.admin.configs import Resource
    from kgctl.client.admin.topic_alterations import PARTITIONS as COUNT

    items: list[Item] = []
    configs: dict[Resource, dict[str, str | None]] = {}
    for row in rows:
        if row.status != _PLANNED or row.error:
            continue
        if row.setting == COUNT:
            items.append(Item(PARTITIONS, SET, (row.topic,), PARTITIONS, row.old_value, row.new_value))
        else:
            configs.setdefault(Resource(TOPIC_CONFIG, row.topic), {})[row.setting] = row.new_value
    return items + configs_changed(admin, configs)


def partitions_added(admin: Admin, names: Sequence[str], count: int) -> list[Item]:
    """Topics that get this many partitions."""
    found = admin.stored_topics(names)
    counts = {name: topic.partitions for name, topic in found.items() if isinstance(topic, StoredTopic)}
    return [Item(PARTITIONS, SET, (name,), PARTITIONS, _text(counts.get(name)), str(count)) for name in names]


def config_rows_changed(admin: Admin, rows: Sequence[ConfigChange]) -> list[Item]:
    from kgctl.client.admin.configs import Resource

    wanted: dict[Resource, dict[str, str | None]] = {}
    for row in rows:
        if row.status == _PLANNED and not row.error:
            wanted.setdefault(Resource(row.resource_type, row.resource), {})[row.config] = row.new_value
    return configs_changed(admin, wanted, {row.config for row in rows if row.sensitive})


def configs_changed(
    admin: Admin, wanted: Mapping[Resource, Mapping[str, str | None]], secret: Collection[str] = ()
) -> list[Item]:
    """Configs to set, or to unset (None); those that are secret. The old value is what is set on the resource itself."""
    if not wanted:
        return []
    names = list(dict.fromkeys(name for some in wanted.values() for name in some))
    found = admin.own_configs(list(wanted), names)
    items = []
    for resource, values in wanted.items():
        present = found[resource]
        for name, new in values.items():
            known = present.get(name) if isinstance(present, dict) else None
            hidden = name in secret or (is_secret(name) if known is None else known.is_sensitive)
            old = known.value if known is not None and known.is_own else None
            if hidden:
                old = HIDDEN if known is not None and known.is_own else None
                new = None if new is None else HIDDEN
            is_kept = isinstance(present, dict) and not hidden
            items.append(Item(CONFIG, SET, tuple(resource), name, old, new, is_kept))
    return items


def quotas_changed(rows: Iterable[QuotaChange]) -> list[Item]:
    return [
        Item(
            QUOTA,
            SET,
            (row.user, row.client_id, row.ip),
            row.quota,
            number_text(row.old_value),
            number_text(row.new_value),
        )
        for row in rows
        if row.status == _PLANNED and not row.error
    ]


def features_changed(rows: Iterable[FeatureChange]) -> list[Item]:
    return [
        Item(FEATURE, SET, (row.feature,), LEVEL, _text(row.old_level), _text(row.new_level))
        for row in rows
        if row.status == _PLANNED and not row.error
    ]


def records_deleted(rows: Iterable[RecordDeletion]) -> list[Item]:
    """The old value is where the log started."""
    return [
        Item(
            RECORDS,
            DELETE,
            (row.topic, str(row.partition)),
            old=_text(row.log_start_offset),
            new=_text(row.new_start_offset),
        )
        for row in rows
        if row.status == _PLANNED and not row.error
    ]


def passwords_set(admin: Admin, user: str, mechanisms: Iterable[str], iterations: int) -> list[Item]:
    known = {row.mechanism: row.iterations for row in admin.list_users([user]) if not row.error}
    return [Item(USER, SET, (user, name), old=_rounds(known.get(name)), new=_rounds(iterations)) for name in mechanisms]


def users_deleted(rows: Iterable[UserChange]) -> list[Item]:
    return [
        Item(USER, DELETE, (row.user, row.mechanism), old=_rounds(row.iterations))
        for row in rows
        if row.status == _PLANNED and not row.error
    ]


def acls_added(rows: Iterable[AclChange]) -> list[Item]:
    return [Item(ACL, CREATE, acl_parts(row), new=EXISTS) for row in rows if row.status == _PLANNED and not row.error]


def acls_removed(rows: Iterable[AclChange]) -> list[Item]:
    return [Item(ACL, DELETE, acl_parts(row), old=EXISTS) for row in rows if row.status == _PLANNED and not row.error]


def transactions_aborted(rows: Iterable[TransactionAbort]) -> list[Item]:
    return [Item(TRANSACTION, ABORT, _transaction(row), old=row.state) for row in rows if not row.error]


def key_of(row: Any) -> Key:
    """The key of the item that the row of a command is about."""
    return _KEYS[type(row).__name__](row)


def acl_parts(row: AclRow) -> tuple[str, ...]:
    return (
        row.resource_type,
        row.resource,
        row.pattern_type,
        row.principal,
        row.permission,
        row.operation,
        row.host,
    )


def _transaction(row: TransactionAbort) -> tuple[str | None, ...]:
    return (row.transactional_id or f"in {row.topic}-{row.partition} at {row.start_offset}",)


def _alteration(row: TopicAlteration) -> Key:
    if row.setting == PARTITIONS:
        return (PARTITIONS, row.topic, PARTITIONS)
    return (CONFIG, "topic", row.topic, row.setting)


_KEYS: dict[str, Callable[[Any], Key]] = {
    "TopicChange": lambda row: (TOPIC, row.topic, None),
    "TopicAlteration": _alteration,
    "ConfigChange": lambda row: (CONFIG, row.resource_type, row.resource, row.config),
    "QuotaChange": lambda row: (QUOTA, row.user, row.client_id, row.ip, row.quota),
    "FeatureChange": lambda row: (FEATURE, row.feature, LEVEL),
    "RecordDeletion": lambda row: (RECORDS, row.topic, str(row.partition), None),
    "UserChange": lambda row: (USER, row.user, row.mechanism, None),
    "AclChange": lambda row: (ACL, *acl_parts(row), None),
    "TransactionAbort": lambda row: (TRANSACTION, *_transaction(row), None),
}


def number_text(value: float | None) -> str | None:
    """A quota as text; equal numbers have equal texts."""
    if value is None:
        return None
    return str(int(value)) if value.is_integer() else repr(value)


def _rounds(iterations: int | None) -> str | None:
    return None if iterations is None else f"{iterations} iterations"


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)
