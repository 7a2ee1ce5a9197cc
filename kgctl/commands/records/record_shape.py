"""How `kgctl consume` prints records: lines, JSON lines, a format string, or decoded."""

from __future__ import annotations

import typer

from kgctl.commands.shared.arguments import only_one
from kgctl.commands.shared.escapes import unescape
from kgctl.render.records import LineOptions, RecordFormat, as_json_lines, as_lines


def shape_of(options: LineOptions, as_json: bool, format_text: str | None, decode: str | None) -> RecordFormat:
    fields = options.timestamp or options.partition or options.offset or options.headers or options.key
    only_one({"--format": format_text, "--json": as_json})
    only_one({"--format": format_text, "--decode": decode})
    only_one({"--format": format_text, "--print-...": fields})
    only_one({"--decode": decode, "--print-...": fields})
    if decode is not None:
        from kgctl.render.internal_records import decoded_as

        return decoded_as(str(decode), as_json=as_json)
    if format_text is not None:
        from kgctl.render.program import BadFormat
        from kgctl.render.record_format import formatted

        try:
            return formatted(unescape(format_text, "--format"), options.null)
        except BadFormat as error:
            raise typer.BadParameter(f"{error}.", param_hint="'--format'") from None
    return as_json_lines if as_json else as_lines(options)
