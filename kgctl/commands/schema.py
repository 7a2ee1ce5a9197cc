"""`kgctl schema`: the JSON Schema of what commands print."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from kgctl.commands.shared.arguments import only_one
from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings

EPILOG = examples(
    "kgctl schema", "kgctl schema groups > groups.schema.json", "kgctl schema plan-file", "kgctl schema --all"
)


@shows("kinds")
@local
def schema(
    ctx: typer.Context,
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", show_default=False)] = None,
    every_kind: Annotated[bool, typer.Option("--all", help="Print one schema that answers of any kind fit.")] = False,
) -> None:
    """Print the JSON Schema of an answer.

    Without KIND, list the kinds with the keys of their rows. The schema is that of -o json and -o yaml; a line of -o jsonl is
    one of its rows. --columns leaves keys out. plan-file and snapshot-file are the files of --plan and `groups snapshot`.
    """
    from kgctl.model.kinds import KindRow
    from kgctl.render.layouts import LAYOUTS
    from kgctl.render.schemas import FILES, schema_of_answer, schema_of_any, schema_of_file
    from kgctl.render.selection import keys_of

    only_one({"KIND": kind, "--all": every_kind})
    rows = {name: layout.row for name, layout in sorted(LAYOUTS.items()) if layout.row is not None}
    if every_kind:
        return _print(schema_of_any(rows))
    if kind is None:
        return settings(ctx).show(
            [KindRow(name, tuple(keys_of(layout))) for name, layout in sorted(LAYOUTS.items())], kind="kinds"
        )
    if kind in FILES:
        return _print(schema_of_file(kind))
    if kind not in rows:
        raise typer.BadParameter(f"{kind!r} is not one of {', '.join([*rows, *FILES])}.", param_hint="'KIND'")
    return _print(schema_of_answer(kind, rows[kind]))


def _print(content: dict[str, Any]) -> None:
    typer.echo(json.dumps(content, indent=2))
