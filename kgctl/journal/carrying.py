"""Carries out items, and says what became of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from broker.light_dataclasses import replace
from kgctl.client.net.errors import KgctlError
from kgctl.journal.items import Key, key_of
from kgctl.journal.results import Outcome
from kgctl.journal.reversal import Step
from kgctl.model.acls import AclChange
from kgctl.model.changes import DONE, FAILED, TopicChange
from kgctl.model.configs import ConfigChange
from kgctl.model.failure import RowError
from kgctl.model.features import FeatureChange
from kgctl.model.items import ACL, CONFIG, CREATE, FEATURE, QUOTA, TOPIC, USER, Item, ItemRow
from kgctl.model.quotas import QuotaChange
from kgctl.model.users import UserChange

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin


def carry_out_items(admin: Admin, steps: Sequence[Step]) -> tuple[list[ItemRow], list[Outcome]]:
    """The rows of all steps, and the outcomes of those that have something to do."""
    wanted = [step.item for step in steps if step.item is not None]
    errors: dict[Key, RowError | None] = {}
    for kind, change in _CHANGES.items():
        some = [item for item in wanted if item.kind == kind]
        try:
            rows = change(admin, some) if some else []
        except KgctlError as error:
            errors |= {item.key: error.as_row() for item in some}
            continue
        errors |= {key_of(row): row.error for row in rows}
    return (
        [step.row if step.item is None else _ended(step.row, errors[step.item.key]) for step in steps],
        [Outcome(item.key, errors[item.key], FAILED if errors[item.key] else DONE) for item in wanted],
    )


def _ended(row: ItemRow, error: RowError | None) -> ItemRow:
    return replace(row, status=FAILED if error else DONE, error=error)


def _topics(admin: Admin, items: Sequence[Item]) -> list[Any]:
    gone = [TopicChange(str(item.parts[0]), None, None) for item in items if item.action != CREATE]
    rows: list[Any] = admin.delete_topics(gone) if gone else []
    for item in items:
        if item.action == CREATE:
            configs = {one.name: one.value for one in item.configs}
            rows += admin.create_topics(
                [str(item.parts[0])], partitions=item.partitions, replicas=item.replicas, configs=configs
            )
    return rows


def _configs(admin: Admin, items: Sequence[Item]) -> list[Any]:
    return admin.change_configs(
        [ConfigChange(str(item.parts[0]), str(item.parts[1]), item.setting or "", item.old, item.new) for item in items]
    )


def _quotas(admin: Admin, items: Sequence[Item]) -> list[Any]:
    from kgctl.client.admin.quotas import Entity

    rows: list[Any] = []
    for entity in dict.fromkeys(Entity(*item.parts) for item in items):
        some = [item for item in items if Entity(*item.parts) == entity]
        rows += admin.change_quotas(
            entity,
            [_quota(item) for item in some],
        )
    return rows


def _quota(item: Item) -> QuotaChange:
    user, client_id, ip = item.parts
    return QuotaChange(user, client_id, ip, item.setting, _number(item.old), _number(item.new))


def _users(admin: Admin, items: Sequence[Item]) -> list[Any]:
    return admin.delete_users([UserChange(str(item.parts[0]), item.parts[1]) for item in items])


def _acls(admin: Admin, items: Sequence[Item]) -> list[Any]:
    rows = {item.key: _acl(item) for item in items}
    added = [rows[item.key] for item in items if item.action == CREATE]
    removed = [rows[item.key] for item in items if item.action != CREATE]
    return (admin.add_acls(added) if added else []) + (admin.remove_acls(removed) if removed else [])


def _acl(item: Item) -> AclChange:
    resource_type, resource, pattern, principal, permission, operation, host = map(str, item.parts)
    return AclChange(resource_type, resource, pattern, principal, permission, operation, host)


def _number(value: str | None) -> float | None:
    return None if value is None else float(value)


def _features(admin: Admin, items: Sequence[Item]) -> list[Any]:
    """Levels that become lower again do so where the cluster loses nothing."""
    from kgctl.client.admin.features import SAFE_DOWNGRADE

    rows = [FeatureChange(str(item.parts[0]), int(item.old or 0), int(item.new or 0)) for item in items]
    return admin.change_features(rows, SAFE_DOWNGRADE)


_CHANGES: dict[str, Callable[[Admin, Sequence[Item]], list[Any]]] = {
    TOPIC: _topics,
    CONFIG: _configs,
    QUOTA: _quotas,
    USER: _users,
    ACL: _acls,
    FEATURE: _features,
}
