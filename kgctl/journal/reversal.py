"""How items of a change are taken back: which can be, what they are now, and what their old values ask for. Mostly pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass, replace
from kgctl.client.admin.reset import MOVED
from kgctl.client.net.errors import KgctlError
from kgctl.journal.command_lines import HIDDEN
from kgctl.journal.items import EXISTS, Key, acl_parts, number_text
from kgctl.model.failure import RowError
from kgctl.model.items import (
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
    USER,
    Item,
    ItemRow,
    StoredTopic,
)

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

NOT_UNDOABLE, SAME = "not undoable", "same"


@dataclass(frozen=True, slots=True)
class Now:
    """What an item is now: its value, None if there is none. `records` counts the offsets that a topic has handed out."""

    value: str | None
    topic_id: str | None = None
    records: int | None = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One item of the change, and what takes it back, if anything does and is needed."""

    row: ItemRow
    item: Item | None = None


def obstacle(item: Item) -> str | None:
    """Why the item can never be taken back, and what to do instead; None if it can."""
    name = item.parts[0]
    if item.kind == PARTITIONS:
        return "Kafka cannot remove partitions: create another topic with fewer, and copy the records"
    if item.kind == RECORDS:
        return f"deleted records cannot be restored; the log started at {item.old}: copy them from a mirror or a backup"
    if item.kind == USER and (item.old is not None or item.action == DELETE):
        return (
            "the journal keeps no secrets: set the password again with "
            f"`kgctl users set-password {name} --mechanism {item.parts[1]}`"
        )
    if item.kind == CONFIG and not item.is_kept and (item.old is not None):
        where = f"{item.parts[0]} {item.parts[1]}"
        return f"the old value is secret and was not kept: set it with `kgctl configs set {where} {item.setting}=...`"
    if item.kind == CONFIG and not item.is_kept and item.new != HIDDEN:
        return "the old value could not be read, so it was not kept: `kgctl configs describe` shows what is set"
    if item.kind in (TOPIC, ACL, QUOTA, CONFIG, USER, FEATURE):
        return None
    return "an aborted transaction cannot be continued: its producer must write the records again"


def steps_of(items: Sequence[Item], now: Mapping[Key, Now | KgctlError], *, force: bool) -> list[Step]:
    return [_step(item, now, force) for item in items]


def _step(item: Item, now: Mapping[Key, Now | KgctlError], force: bool) -> Step:
    row = ItemRow(item.kind, item.subject, item.action, item.setting, item.new, item.old)
    hindrance = obstacle(item)
    if hindrance is not None:
        return Step(replace(row, note=hindrance, status=NOT_UNDOABLE))
    found = now[item.key]
    if isinstance(found, KgctlError):
        return Step(replace(row, status="failed", error=found.as_row()))
    inverse = _inverse(item, found)
    row = replace(row, action=inverse.action, old_value=found.value)
    if _is_as_before(item, found):
        return Step(replace(row, status=SAME, note="as it was before the change"))
    problem = _problem(item, found)
    if problem is not None and (not force or item.action == DELETE):
        way = "" if item.action == DELETE else "; add --force to replace it"
        text = f"{item.subject}{f' {item.setting}' if item.setting else ''}: {problem}{way}"
        return Step(replace(row, status="failed", error=RowError(MOVED, text)))
    # With force, the row says what is lost.
    remarks = [text for text in (_remark(item), problem) if text is not None]
    return Step(replace(row, note="; ".join(remarks) or None), inverse)


def _inverse(item: Item, now: Now) -> Item:
    action = {CREATE: DELETE, DELETE: CREATE, SET: SET}[item.action]
    if item.kind == USER:
        action = DELETE
    return replace(item, action=action, old=now.value, new=item.old, topic_id=now.topic_id)


def _is_as_before(item: Item, now: Now) -> bool:
    if item.kind == TOPIC and item.action == DELETE and now.value is not None:
        # Another topic may have the name by now.
        return item.topic_id is not None and now.topic_id == item.topic_id
    if not item.is_kept:
        return now.value is None
    return now.value == item.old


def _problem(item: Item, now: Now) -> str | None:
    """Why the item should not be taken back: it is not as the change left it."""
    if item.kind == TOPIC and item.action == CREATE:
        if item.topic_id is None and now.topic_id is not None:
            return "the journal does not have its id, so another command may have created it"
        if item.topic_id is not None and now.topic_id != item.topic_id:
            return "it was deleted and created again since"
        if now.records != 0:
            count = "an unknown number of records" if now.records is None else f"{now.records} records"
            return f"{count} were written to it since, and would be deleted"
        return None
    if item.kind == TOPIC:
        return None if now.value is None else "a topic with this name was created since: delete it first"
    if item.kind == CONFIG and not item.is_kept:
        return "its value is secret, so kgctl cannot see if it has changed since"
    if now.value != item.new:
        return f"it is {_text(now.value)} now, not {_text(item.new)} as the change left it"
    return None


def _remark(item: Item) -> str | None:
    if item.kind == TOPIC and item.action == DELETE:
        configs = "" if item.is_kept else "; its configs could not be read: they are the defaults"
        return f"created again empty: records, and offsets that groups had committed, are not restored{configs}"
    return "deletes the topic" if item.kind == TOPIC else None


def _text(value: str | None) -> str:
    return "not there" if value is None else repr(value)


def read_now(admin: Admin, items: Sequence[Item]) -> dict[Key, Now | KgctlError]:
    """What the items that can be taken back are now."""
    found: dict[Key, Now | KgctlError] = {}
    wanted = [item for item in items if obstacle(item) is None]
    for kind, read in _READS.items():
        some = [item for item in wanted if item.kind == kind]
        if some:
            found |= read(admin, some)
    return found


def _topics(admin: Admin, items: Sequence[Item]) -> dict[Key, Now | KgctlError]:
    known = admin.stored_topics([str(item.parts[0]) for item in items])
    present = [topic for topic in known.values() if isinstance(topic, StoredTopic)]
    ends = admin.log_ends(present) if present else {}
    found: dict[Key, Now | KgctlError] = {}
    for item in items:
        topic = known.get(str(item.parts[0]))
        if isinstance(topic, StoredTopic):
            found[item.key] = Now(EXISTS, topic.topic_id, ends[topic.topic])
        else:
            found[item.key] = topic if topic is not None else Now(None)
    return found


def _configs(admin: Admin, items: Sequence[Item]) -> dict[Key, Now | KgctlError]:
    from kgctl.client.admin.configs import Resource

    resources = {item.key: Resource(str(item.parts[0]), str(item.parts[1])) for item in items}
    names = list(dict.fromkeys(item.setting or "" for item in items))
    known = admin.own_configs(list(dict.fromkeys(resources.values())), names)
    found: dict[Key, Now | KgctlError] = {}
    for item in items:
        values = known[resources[item.key]]
        if isinstance(values, KgctlError):
            found[item.key] = values
            continue
        value = values.get(item.setting or "")
        is_set = value is not None and value.is_own
        found[item.key] = Now((HIDDEN if value.is_sensitive else value.value) if is_set and value is not None else None)
    return found


def _quotas(admin: Admin, items: Sequence[Item]) -> dict[Key, Now | KgctlError]:
    from kgctl.client.admin.quotas import Entity

    values: dict[Key, str | None] = {}
    for entity in dict.fromkeys(Entity(*item.parts) for item in items):
        for row in admin.list_quotas(entity, strict=True):
            values[QUOTA, row.user, row.client_id, row.ip, row.quota] = number_text(row.value)
    return {item.key: Now(values.get(item.key)) for item in items}


def _users(admin: Admin, items: Sequence[Item]) -> dict[Key, Now | KgctlError]:
    rows = admin.list_users(list(dict.fromkeys(str(item.parts[0]) for item in items)))
    known = {(row.user, row.mechanism): f"{row.iterations} iterations" for row in rows if not row.error}
    return {item.key: Now(known.get((str(item.parts[0]), item.parts[1]))) for item in items}


def _acls(admin: Admin, items: Sequence[Item]) -> dict[Key, Now | KgctlError]:
    from broker.security.acls.bindings import Filter

    present = {acl_parts(row) for row in admin.list_acls([Filter()])}
    return {item.key: Now(EXISTS if item.parts in present else None) for item in items}


def _features(admin: Admin, items: Sequence[Item]) -> dict[Key, Now | KgctlError]:
    levels = {row.feature: str(row.level) for row in admin.features()}
    return {item.key: Now(levels.get(str(item.parts[0]))) for item in items}


_READS: dict[str, Callable[[Admin, Sequence[Item]], dict[Key, Now | KgctlError]]] = {
    TOPIC: _topics,
    CONFIG: _configs,
    QUOTA: _quotas,
    USER: _users,
    ACL: _acls,
    FEATURE: _features,
}
