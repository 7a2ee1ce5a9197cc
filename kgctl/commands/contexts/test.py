"""`kgctl context test`: which step of a connection works, and what to do about the first that does not."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.options import complete_contexts
from kgctl.commands.shared.settings import settings
from kgctl.exit_codes import UNREACHABLE
from kgctl.model.contexts import FAILED
from kgctl.render import TABLES, note

EPILOG = examples("kgctl context test", "kgctl context test prod", "kgctl context test prod -o json")


@shows("context-test")
@reads
def examine(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", show_default=False, autocompletion=complete_contexts)
    ] = None,
) -> None:
    """Test the connection step by step.

    Tests the current choice, or context NAME, with its schema registry, and says what to do about the first step that fails. Of several bootstrap addresses, one must work. Exit code 7 if none does.
    """
    from kgctl.contexts.book import existing
    from kgctl.contexts.diagnosis import diagnose
    from kgctl.contexts.target import Given, choose

    chosen = settings(ctx)
    if name is not None:
        existing(name)
    target = chosen.target() if name is None else choose(Given(context=name))
    rows = diagnose(target, chosen.timeout if chosen.is_timeout_given else None)
    chosen.show(rows, kind="context-test")
    failed = next((row for row in rows if row.status == FAILED), None)
    if failed is not None and chosen.output in TABLES:
        note(f"{failed.step}: {failed.advice}")
    if not rows or rows[-1].status == FAILED:
        raise typer.Exit(UNREACHABLE)
