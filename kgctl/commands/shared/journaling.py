"""What verbs that change something have in common: --plan writes the plan to a file, and executed changes go to the journal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer.core import TyperGroup, TyperOption

from kgctl.commands.shared.out_files import check_out

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.commands.shared.settings import Settings
    from kgctl.journal.journal import Begun
    from kgctl.journal.keeping import Keeper
    from kgctl.model.items import Item
    from kgctl.model.plans import GroupPlan, Plan, StoredGroup

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
        check_out(value, "--plan", overwrite=True)
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
    if execute:
        return keeper(chosen).change_groups(admin, verb, names, groups_of, act, rows_of, reason=reason, correct=correct)
    groups = list(dict.fromkeys(names))
    if groups:
        from kgctl.journal.keeping import known_states, now_ms
        from kgctl.journal.making import plan_of

        states = known_states(admin, groups, execute=False)
        write_plan(chosen, plan_of(verb, admin.cluster_id(), now_ms(), groups_of(states), reason))
    return rows


def keep(
    chosen: Settings,
    admin: Admin,
    verb: str,
    items: Callable[[], Sequence[Item]],
    act: Callable[[], T],
    rows_of: Callable[[T], Sequence[Any]] = lambda rows: rows,  # type: ignore[assignment, return-value]
) -> T:
    """The outcome of `act`, which changes what is no group, with an entry in the journal."""
    return keeper(chosen).change(admin, verb, items, act, rows_of) if chosen.is_journaled else act()


def keeper(chosen: Settings, *, hints: bool = True) -> Keeper:
    """Keeps the changes of this command, unless --no-journal is given."""
    from kgctl.contexts.names import BOOTSTRAP
    from kgctl.journal.keeping import Keeper, origin_of
    from kgctl.render import note

    target = chosen.target()
    origin = origin_of(target.text(BOOTSTRAP) or "", target.name, ["kgctl", *chosen.command_line])

    def hint(sentence: str) -> None:
        if hints and sys.stderr.isatty():
            note(sentence)

    return Keeper(origin, lambda sentence: note(f"Warning: {sentence}."), hint, chosen.is_journaled)


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
