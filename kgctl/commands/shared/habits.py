"""Options of Kafka's tools that a kgctl command understands although it spells them in another way.

`--group` and `--topic` name an argument, `--dry-run` asks for what happens without --execute, `--all-groups` is --all.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

from typer.core import TyperGroup

_ARGUMENTS = {"--group": "GROUP", "--topic": "TOPIC"}
_DRY_RUN, _EXECUTE, _ALL_GROUPS = "--dry-run", "--execute", "--all-groups"


def keep_habits(command: Any) -> None:
    """Let the command and its subcommands understand these options, except those that they have themselves."""
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            keep_habits(below)
        return
    own = {flag for parameter in command.params for flag in parameter.opts}
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    named = arguments[0].metavar or "" if len(arguments) == 1 else ""
    valued = {option for option, name in _ARGUMENTS.items() if name in named and option not in own}
    all_groups = next((one.opts[0] for one in command.params if one.name == "all_groups"), _ALL_GROUPS)
    is_planned = _EXECUTE in own and _DRY_RUN not in own
    if not valued and not is_planned and all_groups == _ALL_GROUPS:
        return
    parse = command.parse_args

    def parse_args(_: Any, ctx: Any, args: list[str]) -> Any:
        if is_planned and _DRY_RUN in args:
            if _EXECUTE in args:
                ctx.fail("Give --dry-run or --execute, not both.")
            args = [word for word in args if word != _DRY_RUN]
        args = [all_groups if word == _ALL_GROUPS else word for word in args]
        return parse(ctx, _with_positionals(args, valued))

    command.parse_args = MethodType(parse_args, command)


def _with_positionals(args: list[str], valued: set[str]) -> list[str]:
    """The arguments with `--group orders` and `--group=orders` as `orders`. An option without its value stays."""
    kept: list[str] = []
    found: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            return [*kept, word, *found, *words]
        name, equals, value = word.partition("=")
        if name not in valued:
            kept.append(word)
            continue
        if not equals:
            following = next(words, None)
            if following is None:
                kept.append(word)
                continue
            value = following
        found.append(value)
    return [*kept, "--", *found] if found else kept
