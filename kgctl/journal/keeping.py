"""Keeps changes in the journal, for commands, Kafka's tools and the dashboard alike.

Each takes what is about to change and a function that changes it: the journal has the old values before the function runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from broker.light_dataclasses import dataclass, replace
from kgctl.client.net.errors import KgctlError, from_row
from kgctl.journal.command_lines import safe_command, without_values
from kgctl.journal.files import CannotKeep
from kgctl.journal.journal import Begun, Journal, Origin
from kgctl.journal.making import plan_of, snapshot_of
from kgctl.journal.recording import recorded
from kgctl.journal.results import row_key
from kgctl.model.items import CONFIG, CREATE, TOPIC, Item
from kgctl.model.plans import OFFSETS, GroupPlan, Plan, Snapshot, StoredGroup

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

T = TypeVar("T")
_WAY_OUT = ". Free or fix it, or add --no-journal"
_SKIP = "; --no-journal skips this"


def _itself(rows: Any) -> Sequence[Any]:
    found: Sequence[Any] = rows
    return found


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps changes that come from `origin`. `warn` takes sentences without a full stop, `hint` a sentence after a change.

    `way_out` follows the error of a journal that cannot be written: what the user can do.
    """

    origin: Origin
    warn: Callable[[str], None]
    hint: Callable[[str], None] = lambda _: None
    is_on: bool = True
    way_out: str = _WAY_OUT

    def change(
        self,
        admin: Admin,
        verb: str,
        items: Callable[[], Sequence[Item]],
        act: Callable[[], T],
        rows_of: Callable[[T], Sequence[Any]] = _itself,
        *,
        undoes: str | None = None,
    ) -> T:
        """The result of `act`, which changes these items. Raises CannotKeep before anything is changed."""
        if not self.is_on:
            return act()
        kept = list(items())
        if not kept:
            return act()
        moment = now_ms()
        plan = plan_of(verb, admin.cluster_id(), moment, ())
        before = snapshot_of(plan.cluster_id, moment, ())

        def correct(result: T, begun: Begun) -> None:
            if any(item.kind == TOPIC and item.action == CREATE for item in kept):
                from kgctl.journal.items import with_ids

                failed = {row_key(row) for row in rows_of(result) if row.error is not None}
                begun.correct(replace(begun.entry, items=tuple(with_ids(admin, kept, failed))))

        return self.record(plan, before, act, rows_of, items=kept, correct=correct, undoes=undoes)

    def change_groups(
        self,
        admin: Admin,
        verb: str,
        names: Iterable[str],
        groups_of: Callable[[Mapping[str, StoredGroup]], Sequence[GroupPlan]],
        act: Callable[[], T],
        rows_of: Callable[[T], Sequence[Any]] = _itself,
        *,
        reason: str = "",
        needs_states: bool = True,
        correct: Callable[[T, Begun], None] = lambda _, __: None,
    ) -> T:
        """The result of `act`, which changes these groups; `groups_of` makes their plans from their state.

        Raises the error of a group that cannot be read; without `needs_states`, it is only listed, and not among the states.
        """
        groups = list(dict.fromkeys(names))
        if not self.is_on or not groups:
            return act()
        try:
            plan, before = self._plan(admin, verb, groups, groups_of, reason, needs_states=needs_states)
        except KgctlError as error:
            error.changed_nothing = True
            raise
        return self.record(plan, before, act, rows_of, correct=correct)

    def _plan(
        self,
        admin: Admin,
        verb: str,
        groups: Sequence[str],
        groups_of: Callable[[Mapping[str, StoredGroup]], Sequence[GroupPlan]],
        reason: str,
        *,
        needs_states: bool,
    ) -> tuple[Plan, Snapshot]:
        moment = now_ms()
        if needs_states:
            states = known_states(admin, groups, execute=True, way_out=_SKIP if self.way_out == _WAY_OUT else "")
            plans = list(groups_of(states))
        else:
            found = admin.group_states(groups)
            states = {name: one for name, one in found.items() if isinstance(one, StoredGroup)}
            plans = [*groups_of(states), *(GroupPlan(name, OFFSETS, None) for name in found if name not in states)]
            states |= {name: StoredGroup(name, None) for name in found if name not in states}
        plan = plan_of(verb, admin.cluster_id(), moment, plans, reason)
        return plan, snapshot_of(plan.cluster_id, moment, (states[group.group] for group in plan.groups))

    def record(
        self,
        plan: Plan,
        before: Snapshot,
        act: Callable[[], T],
        rows_of: Callable[[T], Sequence[Any]] = _itself,
        *,
        items: Sequence[Item] = (),
        undoes: str | None = None,
        correct: Callable[[T, Begun], None] = lambda _, __: None,
    ) -> T:
        """The result of `act`, with an entry for a plan and a snapshot that are made already."""
        if not self.is_on or not (plan.groups or items):
            return act()
        origin = self.origin if undoes is None else replace(self.origin, undoes=undoes)
        secret = {item.setting for item in items if item.kind == CONFIG and item.setting and not item.is_kept}
        if secret:
            origin = replace(origin, command=without_values(origin.command, secret))
        journal = Journal(os.environ, plan.cluster_id)
        try:
            result = recorded(journal, plan, before, origin, act, rows_of, items=items, correct=correct, warn=self.warn)
        except CannotKeep as error:
            raise CannotKeep(f"{error}; nothing was changed{self.way_out}") from None
        self.hint("`kgctl undo` shows how to take this back.")
        return result


def origin_of(address: str, context: str | None, command: Sequence[str]) -> Origin:
    """A change by this user on this machine. `command` are the words of a command line; secrets in it are hidden."""
    import getpass
    import socket

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return Origin(user, socket.gethostname(), address, context, safe_command(command))


def known_states(admin: Admin, groups: Sequence[str], *, execute: bool, way_out: str = _SKIP) -> dict[str, StoredGroup]:
    """The groups as they are. Raises the error of the first one that cannot be read, with `way_out` at its end."""
    known: dict[str, StoredGroup] = {}
    for name, found in admin.group_states(groups).items():
        if isinstance(found, KgctlError):
            error = found.as_row()
            end = f"; nothing was changed{way_out}" if execute else ""
            raise from_row(type(error)(error.name, f"cannot keep the state of group {name!r}: {error.message}{end}"))
        known[name] = found
    return known


def now_ms() -> int:
    return time.time_ns() // 1_000_000
