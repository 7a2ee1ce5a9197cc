"""Write the generated parts of docs/ from the code: the table of requests and settings, and the command reference.

`python -m tools.generate_docs` rewrites them, `--check` exits 1 if one is out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

from broker.options import OPTIONS
from broker.protocol.api_keys import APIS, NATIVE_FIRST_KEY, Api
from broker.server.handlers import HANDLERS
from kgctl.app import app

DOCS = Path(__file__).parent.parent / "docs"


def main(arguments: list[str]) -> int:
    stale = [path for path, text in pages() if path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.name} is out of date: make docs", file=sys.stderr)
        return 1 if stale else 0
    for path, text in pages():
        path.write_text(text)
    return 0


def pages() -> Iterator[tuple[Path, str]]:
    protocol = DOCS / "protocol.md"
    text = _replace(protocol.read_text(), "requests", _requests())
    yield protocol, _replace(text, "settings", _settings())
    yield DOCS / "cli.md", _commands()


def _replace(text: str, part: str, table: str) -> str:
    """The text with what stands between the two marks of this part replaced."""
    begin, end = f"<!-- generated: {part} -->\n", f"<!-- end: {part} -->\n"
    return re.sub(f"(?s){re.escape(begin)}.*?{re.escape(end)}", lambda _: begin + table + end, text)


def _requests() -> str:
    rows = ["| key | request | versions |", "|---|---|---|"]
    rows += [f"| {api.key} | {api.name} | {_versions(api)} |" for api in (APIS[key] for key in sorted(HANDLERS))]
    return "\n".join(rows) + "\n"


def _versions(api: Api) -> str:
    served, advertised = api.versions, api.advertised_versions
    text = f"{served.start}-{served.stop - 1}" if len(served) > 1 else str(served.start)
    if advertised.start != served.start:
        text += f" (advertised from {advertised.start})"
    return text + (" (ours)" if api.key >= NATIVE_FIRST_KEY else "")


def _settings() -> str:
    rows = ["| option | default | |", "|---|---|---|"]
    rows += [f"| `{option.name}` | {_code(option.default)} | {option.doc} |" for option in sorted(OPTIONS, key=_name)]
    return "\n".join(rows) + "\n"


def _name(option: object) -> str:
    return str(getattr(option, "name"))  # noqa: B009


def _code(value: object) -> str:
    if value is None or value == "":
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _commands() -> str:
    parts = ["# Commands\n\nGenerated from the program's own help.\n"]
    root = typer.main.get_command(app)
    parts += _help_of(root, "kgctl", None)
    return "\n".join(parts)


def _help_of(command: object, path: str, parent: object) -> Iterator[str]:
    context = command.make_context(path, [], parent=parent, resilient_parsing=True)  # type: ignore[attr-defined]
    context.max_content_width = context.terminal_width = 100
    yield f"## {path}\n\n```\n{command.get_help(context).rstrip()}\n```\n"  # type: ignore[attr-defined]
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            child = command.get_command(context, name)  # type: ignore[attr-defined]
            if not child.hidden:
                yield from _help_of(child, f"{path} {name}", None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
