"""Answers to options that kgctl does not have and that users of other tools try."""

from __future__ import annotations

from typing import Any


def improve(error: Any) -> None:
    """Replace the guess of a "No such option" error by the right way to say it, where there is one."""
    option, ctx = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if option is None or ctx is None:
        return
    hint = _hint(option, ctx)
    longer = sorted(
        {name for one in ctx.command.params for name in one.opts if len(option) > 2 and name.startswith(option)}
    )
    if longer and error.possibilities is not None:
        error.possibilities = longer
    if hint:
        error.message = f"No such option: {option}. {hint}"
        error.possibilities = None


def _hint(option: str, ctx: Any) -> str | None:
    name = option.lstrip("-")
    if name in getattr(ctx.command, "commands", {}):
        return f"It is a command: `{ctx.command_path} {name}`."
    return None
