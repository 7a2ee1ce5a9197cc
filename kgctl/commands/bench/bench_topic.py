"""The topic of a measurement: one of its own, which is removed at the end, or one that the user names."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from broker.light_dataclasses import dataclass
from kgctl.client.admin.admin import Admin
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError, NotFound, Precondition
from kgctl.model.failure import RowError
from kgctl.model.topics import TopicRow


@dataclass(frozen=True, slots=True)
class BenchTopic:
    """`existing`: a named topic that exists may be used. Partitions and replicas are those of a topic that is created."""

    name: str | None = None
    existing: bool = False
    keep: bool = False
    partitions: int | None = None
    replicas: int | None = None


def fresh_name() -> str:
    """A name that says whose it is and from when, and that no other run has."""
    return time.strftime("kgctl-bench-%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(3)


@contextmanager
def bench_topic(connection: ConnectionSettings, wanted: BenchTopic, note: Callable[[str], None]) -> Iterator[str]:
    """The name of the topic, which exists during the block. Raises Precondition if it must not be used."""
    name = wanted.name or fresh_name()
    with Admin(connection) as admin:
        is_there = wanted.name is not None and find(admin, wanted.name) is not None
        if is_there and not wanted.existing:
            raise Precondition(
                f"topic {name!r} exists already; name another one, or add --existing to write to it nevertheless"
            )
        if not is_there:
            _check(
                admin.create_topics([name], partitions=wanted.partitions, replicas=wanted.replicas, note=note)[0].error
            )
    try:
        yield name
    finally:
        if wanted.name is None and not wanted.keep:
            _remove(connection, name, note)
        elif not is_there:
            note(f"Topic {name!r} was created and is kept.")


def existing_topic(connection: ConnectionSettings, name: str) -> TopicRow:
    """Raises NotFound."""
    with Admin(connection) as admin:
        found = find(admin, name)
    if found is None:
        raise NotFound(f"topic {name!r} does not exist")
    return found


def find(admin: Admin, name: str) -> TopicRow | None:
    """None if the topic does not exist."""
    row = admin.list_topics([name])[0]
    if row.error is not None and row.error.name == "UNKNOWN_TOPIC_OR_PARTITION":
        return None
    _check(row.error)
    return row


def _remove(connection: ConnectionSettings, name: str, note: Callable[[str], None]) -> None:
    try:
        with Admin(connection) as admin:
            _check(admin.delete_topics(admin.plan_topic_deletion([name]))[0].error)
    except KgctlError as error:
        note(f"Warning: topic {name!r} was not removed ({error}); run `kgctl topics delete {name} --execute`.")


def _check(error: RowError | None) -> None:
    if error is not None:
        failure = KgctlError(error.message)
        failure.name = error.name
        raise failure


def remove_group(connection: ConnectionSettings, group: str, note: Callable[[str], None]) -> None:
    """Remove a group without members, if the broker still has it."""
    try:
        with Admin(connection) as admin:
            error = admin.delete_groups(admin.plan_group_deletion([group]))[0].error
        if error is not None and error.name not in ("GROUP_ID_NOT_FOUND", "NOT_FOUND"):
            note(f"Warning: group {group!r} was not removed: {error.message}")
    except KgctlError as error:
        note(f"Warning: group {group!r} was not removed: {error}")
