"""What verbs that change groups have in common: --plan writes the plan to a file, and executed changes go to the journal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer.core import TyperGroup, TyperOption

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.commands.shared.settings import Settings
    from kgctl.journal.journal import Begun, Journal, Origin
    from kgctl.model.plans import GroupPlan, Plan, Snapshot, StoredGroup

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_ATTRIBUTE = "kgctl_journal"
_PLANNED, _JOURNALED = "planned", "journaled"


def planned(verb: F) -> F:
    """The verb makes plans for groups: it gets --plan and --no-journal."""
    setattr(verb, _ATTRIBUTE, _PLANNED)
    return verb


def journaled(verb: F) -> F:
    """The verb executes plans: it gets --no-journal."""
    setattr(verb, _ATTRIBUTE, _JOURNALED)
    return verb


def add_journal_options(command: Any) -> None:
    """Give the command and its subcommands these options, if they are declared so."""
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            add_journal_options(below)
        return
    declared = getattr(command.callback, _ATTRIBUTE, None)
    if declared == _PLANNED:
        command.params.append(
            TyperOption(
                param_decls=["plan_file", "--plan"],
                expose_value=False,
                callback=_remember_file,
                metavar="FILE",
                help="Write the plan to FILE, for `kgctl apply`.",
            )
        )
    if declared:
        command.params.append(
            TyperOption(
                param_decls=["no_journal", "--no-journal"],
                is_flag=True,
                expose_value=False,
                callback=_remember_absence,
                help="Change without a journal entry, which `kgctl undo` needs.",
            )
        )


def _remember_file(ctx: Any, parameter: Any, value: str | None) -> None:
    if value is not None:
        if value in ("", "-"):
            reason = "stdout is for the rows: name a file." if value else "an empty name."
            raise typer.BadParameter(reason, ctx=ctx, param=parameter)
        ctx.obj.plan_file = value


def _remember_absence(ctx: Any, parameter: Any, value: bool | None) -> None:
    ctx.obj.is_journaled = not value


def carry_out(
    chosen: Settings,
    admin: Admin,
    verb: str,
    rows: T,
    names: Iterable[str],
    groups_of: Callable[[Mapping[str, StoredGroup]], Sequence[GroupPlan]],
    act: Callable[[], T],
    *,
    execute: bool,
    reason: str = "",
    rows_of: Callable[[T], Sequence[Any]] = lambda rows: rows,  # type: ignore[assignment, return-value]
    correct: Callable[[T, Begun], None] = lambda _, __: None,
) -> T:
    """The outcome of `act`, with an entry in the journal; without `execute` the planned rows, written to the file of --plan.

    `names` are the groups that change, `groups_of` makes their plans from their state.
    """
    if not execute and chosen.plan_file is None:
        return rows
    if execute and chosen.plan_file is not None:
        raise typer.BadParameter("Write the plan or execute it, not both.", param_hint="'--plan', '--execute'")
    if execute and not chosen.is_journaled:
        return act()
    groups = list(dict.fromkeys(names))
    if not groups:
        return act() if execute else rows
    moment = now_ms()
    states = known_states(admin, groups, execute=execute)
    from kgctl.journal.making import plan_of, snapshot_of

    plan = plan_of(verb, admin.cluster_id(), moment, groups_of(states), reason)
    if not execute:
        write_plan(chosen, plan)
        return rows
    before = snapshot_of(plan.cluster_id, moment, (states[group.group] for group in plan.groups))
    return record(chosen, plan, before, act, rows_of, correct=correct)


def known_states(admin: Admin, groups: Sequence[str], *, execute: bool) -> dict[str, StoredGroup]:
    """The groups as they are. Raises the error of the first one that cannot be read."""
    from kgctl.client.net.errors import KgctlError, from_row

    known: dict[str, StoredGroup] = {}
    for name, found in admin.group_states(groups).items():
        if isinstance(found, KgctlError):
            error = found.as_row()
            end = "; nothing was changed; --no-journal skips this" if execute else ""
            raise from_row(type(error)(error.name, f"cannot keep the state of group {name!r}: {error.message}{end}"))
        known[name] = found
    return known


def record(
    chosen: Settings,
    plan: Plan,
    before: Snapshot,
    act: Callable[[], T],
    rows_of: Callable[[T], Sequence[Any]],
    *,
    undoes: str | None = None,
    correct: Callable[[T, Begun], None] = lambda _, __: None,
) -> T:
    """Change something with an entry in the journal, unless --no-journal is given."""
    if not chosen.is_journaled or not plan.groups:
        return act()
    from kgctl.journal.files import CannotKeep
    from kgctl.journal.journal import Journal
    from kgctl.journal.recording import recorded
    from kgctl.render import note

    journal: Journal = Journal(os.environ, plan.cluster_id)
    try:
        result = recorded(
            journal,
            plan,
            before,
            origin_of(chosen, undoes),
            act,
            rows_of,
            correct=correct,
            warn=lambda sentence: note(f"Warning: {sentence}."),
        )
    except CannotKeep as error:
        raise CannotKeep(f"{error}; nothing was changed. Free or fix it, or add --no-journal") from None
    if sys.stderr.isatty():
        note("`kgctl undo` shows how to take this back.")
    return result


def origin_of(chosen: Settings, undoes: str | None = None) -> Origin:
    import getpass
    import socket

    from kgctl.contexts.names import BOOTSTRAP
    from kgctl.journal.command_lines import safe_command
    from kgctl.journal.journal import Origin

    target = chosen.target()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    command = safe_command(["kgctl", *chosen.command_line])
    return Origin(user, socket.gethostname(), target.text(BOOTSTRAP) or "", target.name, command, undoes)


def write_plan(chosen: Settings, plan: Plan) -> None:
    """Write a plan file, and say so on stderr."""
    assert chosen.plan_file is not None
    from kgctl.journal.documents import as_bytes
    from kgctl.render import note

    if not plan.groups:
        note("No plan was written: there is nothing to change.")
        return
    write_document(chosen.plan_file, as_bytes(plan))
    count = "1 group" if len(plan.groups) == 1 else f"{len(plan.groups)} groups"
    note(f"Plan for {count} written to {chosen.plan_file}; apply it with `kgctl apply`.")


def write_document(path: str, content: bytes) -> None:
    """Write a whole file, or stdout for -. Raises CannotKeep."""
    from pathlib import Path

    from broker.atomic_file import replace_file
    from kgctl.journal.files import CannotKeep

    if path == "-":
        sys.stdout.write(content.decode())
        return
    try:
        # A device or a pipe must not be replaced by a file.
        if os.path.exists(path) and not os.path.isfile(path):
            Path(path).write_bytes(content)
        else:
            replace_file(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise CannotKeep(f"cannot write {path}: {error.strerror}") from None


def now_ms() -> int:
    return time.time_ns() // 1_000_000
