"""Write what is generated from the code: the tables of requests and settings and the command reference in docs/, help pages.

`python -m tools.generate_docs` rewrites them, `--check` exits 1 if one is out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from typer.testing import CliRunner

from broker.config.options import OPTIONS
from broker.protocol.acls import Operation, ResourceType
from broker.protocol.api_keys import APIS, NATIVE_FIRST_KEY, Api
from broker.server.handlers import SERVED_KEYS, find_declaration
from kgctl.app import COMMANDS, app, load
from kgctl.client.config import every_client
from kgctl.client.config.configuration import CLIENTS, options_of
from kgctl.client.config.option import Option
from kgctl.commands.shared.loading import verbs_of
from kgctl.help import PAGES, file_name
from kgctl.render.layouts import LAYOUTS

ROWS = """## Keys of JSON, YAML and CSV

See [output.md](output.md) for the formats. Scripts can rely on these keys; `kgctl schema KIND` prints them as a JSON Schema.
"""
CLIENT_OPTIONS = """# Options of the Python clients

`Admin`, `Consumer`, `Producer` and their asyncio twins take Kafka's options. As keyword arguments they have underscores for dots:

    Producer("localhost:9092", linger_ms=20, compression_type="zstd")

`from_properties` takes Kafka's names, as in a `client.properties` file: values may be text, and options of other kinds of clients
are skipped.

    Consumer.from_properties({"bootstrap.servers": "localhost:9092", "group.id": "billing", "fetch.min.bytes": "1024"})

An unknown name is an error that names the nearest one. Times are in milliseconds, sizes in bytes. See [connect.md](connect.md)
for the options of TLS and SASL (`security.protocol`, `ssl.*`, `sasl.*`); they are the same here.

## Every client
"""
IGNORED_OPTIONS = """## Accepted but ignored

Kafka's Java clients have these options, and they change nothing here.
"""
DOCS = Path(__file__).parent.parent / "docs"


def main(arguments: list[str]) -> int:
    stale = [(path, text) for path, text in [*pages(), *help_pages()] if not path.exists() or path.read_text() != text]
    surplus = surplus_help_pages()
    for path, text in stale:
        if "--check" in arguments:
            print(f"{path.name} is out of date: make docs", file=sys.stderr)
        else:
            path.write_text(text)
    for path in surplus:
        if "--check" in arguments:
            print(f"{path.name} belongs to no command: make docs", file=sys.stderr)
        else:
            path.unlink()
    return 1 if (stale or surplus) and "--check" in arguments else 0


def pages() -> Iterator[tuple[Path, str]]:
    for path, text_of in GENERATED.items():
        yield path, text_of()


def _protocol() -> str:
    text = _replace((DOCS / "protocol.md").read_text(), "requests", _requests())
    return _replace(text, "settings", _settings())


def help_pages() -> Iterator[tuple[Path, str]]:
    """The pages that `kgctl COMMAND --help` shows without loading the command."""
    for path in _command_paths():
        shown = CliRunner().invoke(app, [*path, "--help"], prog_name="kgctl", env={"COLUMNS": "80"}, color=False)
        assert shown.exit_code == 0, shown.output
        yield Path(PAGES, file_name(path)), shown.stdout


def surplus_help_pages() -> list[Path]:
    known = {file_name(path) for path in _command_paths()}
    return [path for path in sorted(Path(PAGES).glob("*.txt")) if path.name not in known]


def _replace(text: str, part: str, table: str) -> str:
    """The text with what stands between the two marks of this part replaced."""
    begin, end = f"<!-- generated: {part} -->\n", f"<!-- end: {part} -->\n"
    return re.sub(f"(?s){re.escape(begin)}.*?{re.escape(end)}", lambda _: begin + table + end, text)


def _requests() -> str:
    rows = ["| key | request | versions | ACL operations |", "|---|---|---|---|"]
    rows += [f"| {key} | {APIS[key].name} | {_versions(APIS[key])} | {_acls(key)} |" for key in SERVED_KEYS]
    return "\n".join(rows) + "\n"


def _acls(key: int) -> str:
    """The operations by resource, as in "Read Group, Describe Topic"."""
    declared = find_declaration(key)
    assert declared is not None
    return ", ".join(f"{_words(acl.operation)} {_words(acl.kind)}" for acl in declared.guard.acls)


def _words(member: Operation | ResourceType) -> str:
    return member.name.title().replace("_", "")


def _versions(api: Api) -> str:
    served, advertised = api.versions, api.advertised_versions
    text = f"{served.start}-{served.stop - 1}" if len(served) > 1 else str(served.start)
    if advertised.start != served.start:
        text += f" (advertised from {advertised.start})"
    return text + (" (private)" if api.key >= NATIVE_FIRST_KEY else "")


def _settings() -> str:
    rows = ["| option | default | |", "|---|---|---|"]
    rows += [f"| `{option.name}` | {_code(option.default)} | {option.doc} |" for _, option in sorted(OPTIONS.items())]
    return "\n".join(rows) + "\n"


def _code(value: object) -> str:
    if value in (None, "", ()):
        return ""
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _commands() -> str:
    head = "# Commands\n\nGenerated from the program's own help.\n"
    return "\n".join([head, *map(_help, _command_paths()), _rows()])


def _command_paths() -> list[list[str]]:
    paths: list[list[str]] = [[]]
    for name in COMMANDS:
        paths.append([name])
        paths += [[name, verb] for verb in verbs_of(load(name))]
    return paths


def _rows() -> str:
    rows = [f"| `{kind}` | {_keys(layout.row)} |" for kind, layout in LAYOUTS.items()]
    return "\n".join([ROWS, "| kind | keys of a row |", "|---|---|", *rows]) + "\n"


def _keys(row: type | None) -> str:
    assert row is not None
    return ", ".join(f"`{field.name}`" for field in fields(row))


def _help(path: list[str]) -> str:
    shown = CliRunner().invoke(app, [*path, "--help"], prog_name="kgctl", terminal_width=100, color=False)
    return f"## {' '.join(['kgctl', *path])}\n\n```\n{shown.stdout.rstrip()}\n```\n"


def _client_options() -> str:
    parts = [CLIENT_OPTIONS, _option_table(every_client.OPTIONS)]
    for client in CLIENTS:
        own = [option for option in options_of(client).values() if option not in every_client.OPTIONS]
        parts += [f"## {client.capitalize()}\n", _option_table([option for option in own if not option.is_ignored])]
    ignored = {option.name: option for client in CLIENTS for option in options_of(client).values() if option.is_ignored}
    rows = [f"| `{name}` | {option.doc} |" for name, option in sorted(ignored.items())]
    return "\n".join([*parts, IGNORED_OPTIONS, "| option | |", "|---|---|", *rows]) + "\n"


def _option_table(options: Iterable[Option]) -> str:
    rows = ["| option | type | default | |", "|---|---|---|---|"]
    for option in sorted(options, key=lambda option: option.name):
        words = f" One of {', '.join(f'`{word}`' for word in option.choices)}." if option.choices else ""
        doc = option.doc + words + _bounds(option)
        rows.append(f"| `{option.name}` | {option.kind} | {_code(option.default)} | {doc} |")
    return "\n".join(rows) + "\n"


def _bounds(option: Option) -> str:
    if option.least is None or (option.least == 0 and option.most is None):
        return ""
    return f" From {option.least} to {option.most}." if option.most is not None else f" At least {option.least}."


GENERATED = {
    DOCS / "protocol.md": _protocol,
    DOCS / "cli.md": _commands,
    DOCS / "client-options.md": _client_options,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
