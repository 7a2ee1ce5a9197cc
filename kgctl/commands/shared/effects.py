"""What each verb does to a cluster. A verb that does not declare it cannot be loaded, so no verb can forget to ask.

From the declaration follow two checks, before the verb runs and before any connection is opened: a read-only context
refuses what changes something, and a context with `confirm = true` asks for the names of what would change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from typer.core import TyperGroup, TyperOption

from broker.light_dataclasses import dataclass

if TYPE_CHECKING:
    from kgctl.commands.shared.settings import Settings
    from kgctl.contexts.target import Target

F = TypeVar("F", bound=Callable[..., Any])
_ATTRIBUTE, _KINDS = "kgctl_effect", "kgctl_kinds"


@dataclass(frozen=True, slots=True)
class Effect:
    """`names` are the parameters that hold what would change, `when` the one without which nothing changes.

    A verb that decides itself may change something; it calls `check_change` before. `repeatable`: --watch may
    run the verb again and again. `is_offline`: options that choose a cluster would have no effect.
    """

    is_change: bool
    names: tuple[str, ...] = ()
    when: str | None = None
    decides_itself: bool = False
    repeatable: bool = False
    is_offline: bool = False
    has_own_rows: bool = False

    def applies(self, parameters: dict[str, Any]) -> bool:
        return self.is_change and (self.when is None or bool(parameters[self.when]))

    def changed(self, parameters: dict[str, Any]) -> list[str]:
        given = [parameters[name] for name in self.names]
        each = ([one] if isinstance(one, str) else one or () for one in given)
        return list(dict.fromkeys(name for names in each for name in names))


def reads(verb: F) -> F:
    """The verb only reads from the cluster."""
    return _declared(verb, Effect(False, repeatable=True))


def waits(verb: F) -> F:
    """The verb reads from the cluster again and again by itself, so --watch does not repeat it."""
    return _declared(verb, Effect(False))


def local(verb: F) -> F:
    """The verb does not go to the chosen cluster: it works on this machine."""
    return _declared(verb, Effect(False))


def reads_files(verb: F) -> F:
    """The verb reads files of this machine and needs no connection."""
    return _declared(verb, Effect(False, is_offline=True))


def queries_files(verb: F) -> F:
    """The same, and what its rows hold depends on the arguments."""
    return _declared(verb, Effect(False, is_offline=True, has_own_rows=True))


def decides_itself(verb: F) -> F:
    """What the verb does depends on its arguments: it calls `check_change` before it changes something."""
    return _declared(verb, Effect(False, decides_itself=True))


def changes(*, names: str | tuple[str, ...] = (), when: str | None = None) -> Callable[[F], F]:
    """The verb changes the cluster, if the parameter `when` is given. `names`: the parameters with what changes, by name."""

    def declare(verb: F) -> F:
        return _declared(verb, Effect(True, (names,) if isinstance(names, str) else names, when))

    return declare


def shows(*kinds: str) -> Callable[[F], F]:
    """The verb shows rows of these kinds (see kgctl.render.layouts): it gets the options for tables.

    Column names are checked against these kinds before the verb runs.
    """

    def declare(verb: F) -> F:
        setattr(verb, _KINDS, kinds)
        return verb

    return declare


def kinds_of(command: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(command.callback, _KINDS, ())
    return found


def declared_effect(command: Any) -> Effect | None:
    """None for a group, and for a verb that is not loaded yet."""
    found: Effect | None = getattr(command.callback, _ATTRIBUTE, None)
    return found


def effect_of(command: Any) -> Effect:
    found = declared_effect(command)
    assert isinstance(found, Effect), f"{command.name} declares no effect: put @reads, @local or @changes(...) above it"
    return found


def guard(command: Any) -> None:
    """Let the command and its subcommands check their effect before they run."""
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            guard(below)
        return
    effect = effect_of(command)
    if not effect.is_change and not effect.decides_itself:
        return
    command.params.append(
        TyperOption(
            param_decls=["yes", "--yes"],
            multiple=True,
            expose_value=False,
            callback=_remember,
            metavar="NAME",
            help="Confirm NAME where the context asks for it; repeatable.",
        )
    )
    run = command.invoke

    def invoke(_: Any, ctx: Any) -> Any:
        if effect.applies(ctx.params):
            _check(ctx, effect)
        return run(ctx)

    command.invoke = MethodType(invoke, command)


def _declared(verb: F, effect: Effect) -> F:
    setattr(verb, _ATTRIBUTE, effect)
    return verb


def _remember(ctx: Any, parameter: Any, value: Any) -> None:
    ctx.obj.confirmed = list(value or ())


def _check(ctx: Any, effect: Effect) -> None:
    what = f"`{ctx.command_path}`" + (f" with {_flag(ctx, effect)}" if effect.when else "")
    check_change(ctx, effect.changed(ctx.params), what)


def check_change(ctx: Any, names: Sequence[str], what: str) -> None:
    """Refuse `what` in a read-only context, and ask for the names if the context says so. Raises a KgctlError."""
    check_settings(ctx.obj, names, what)


def check_settings(chosen: Settings, names: Sequence[str], what: str) -> None:
    """The same for a cluster that another option than --context names."""
    target: Target = chosen.target()
    if target.is_read_only:
        from kgctl.contexts.consequences import read_only_error

        raise read_only_error(target, what)
    if target.must_confirm:
        from kgctl.commands.shared.confirmation import confirm

        confirm(target, names, chosen.confirmed)


def _flag(ctx: Any, effect: Effect) -> str:
    return next(str(one.opts[-1]) for one in ctx.command.params if one.name == effect.when)
