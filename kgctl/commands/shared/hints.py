"""Answers to options that kgctl does not have and that users of other tools try."""

from __future__ import annotations

from typing import Any

PLAN_FIRST = "Without --execute the plan is shown and nothing changes."
ARGUMENTS = {"--group": "GROUP", "--topic": "TOPIC"}


def improve(error: Any) -> None:
    """Replace the guess of a "No such option" error by the right way to say it, where there is one."""
    option, ctx = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if option is None or ctx is None:
        return
    hint = _hint(option, ctx)
    if hint:
        error.message = f"No such option: {option}. {hint}"
        error.possibilities = None


def _hint(option: str, ctx: Any) -> str | None:
    command = ctx.command
    name = option.lstrip("-")
    if name in getattr(command, "commands", {}):
        return f"It is a command: `{ctx.command_path} {name}`."
    flags = {flag for parameter in command.params for flag in parameter.opts}
    if option == "--dry-run" and "--execute" in flags:
        return PLAN_FIRST
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    for argument in arguments:
        if option in ARGUMENTS and ARGUMENTS[option] in (argument.metavar or ""):
            return f"The {name} is an argument: `{ctx.command_path} {argument.metavar.strip('[]')}`."
    return None
