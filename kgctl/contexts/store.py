"""Changes the user's contexts: the file keeps its comments, is replaced atomically and is private."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.security.secret import Secret
from kgctl.client.net.errors import NotFound
from kgctl.contexts.book import read_choice
from kgctl.contexts.context_file import CONTEXTS, Context, ContextFile, parse, read_file
from kgctl.contexts.names import CONFIRM, READ_ONLY, TIMEOUT, BadContext, check_name
from kgctl.contexts.places import current_file, user_file, user_folder
from kgctl.contexts.private_files import one_writer, read_bytes, write
from kgctl.contexts.values import Reference, Value

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Table

_HEAD = "# Contexts of kgctl: named clusters; see `kgctl context --help`.\n\n"


def put(
    name: str, properties: Mapping[str, Value], *, replace: bool = False, environ: Mapping[str, str] = os.environ
) -> Path:
    """Store a context under a new name, or in the place of an old one; return the file.

    `properties` have Kafka's names, or are kgctl's own settings as texts: read-only and confirm "true", timeout "10".
    Raises BadContext if the name is taken or a setting is not valid.
    """
    check_name(name)

    def apply(document: TOMLDocument, old: ContextFile | None) -> None:
        tables = _tables(document)
        if name in tables:
            if not replace:
                raise BadContext(
                    f"the context {name!r} exists already in {user_file(environ)}: change it with `kgctl context edit`, "
                    "or add --replace"
                )
            del tables[name]
        import tomlkit

        tables.append(name, tomlkit.table())
        _set(tables[name], properties)

    return _edit(environ, apply)


def change(
    name: str,
    properties: Mapping[str, Value],
    unset: Sequence[str] = (),
    *,
    environ: Mapping[str, str] = os.environ,
) -> Path:
    """Set and remove settings of a context of the user's file. Raises NotFound and BadContext."""

    def apply(document: TOMLDocument, old: ContextFile | None) -> None:
        context = _existing(old, name, environ)
        for setting in unset:
            if setting not in context.settings:
                raise BadContext(f"the context {name!r} does not set {setting}")
        table = _tables(document)[name]
        for setting in (*unset, *(one for one in properties if one in context.settings)):
            if setting in unset or not _replaced(table, setting, properties[setting]):
                _remove(table, setting)
        _set(table, {one: value for one, value in properties.items() if _find(table, one) is None})

    return _edit(environ, apply)


def remove(name: str, *, environ: Mapping[str, str] = os.environ) -> bool:
    """Remove a context; whether it was the current one, which is then none. Raises NotFound."""

    def apply(document: TOMLDocument, old: ContextFile | None) -> None:
        _existing(old, name, environ)
        del _tables(document)[name]

    _edit(environ, apply)
    if read_choice(environ) != name:
        return False
    use(None, environ=environ)
    return True


def use(name: str | None, *, environ: Mapping[str, str] = os.environ) -> None:
    """Make a context the current one, or none of them. Does not check that it exists."""
    with one_writer(user_folder(environ)):
        write(current_file(environ), f"{name}\n".encode() if name else b"")


def replace_file(content: bytes, *, environ: Mapping[str, str] = os.environ) -> None:
    """Store the whole file as edited. Raises BadContext if it is not valid."""
    path = user_file(environ)
    parse(content, path)
    with one_writer(user_folder(environ)):
        write(path, content)


def _edit(environ: Mapping[str, str], apply: Any) -> Path:
    import tomlkit

    path = user_file(environ)
    with one_writer(user_folder(environ)):
        old = read_file(path)  # says clearly what is wrong with it
        content = read_bytes(path)
        document = tomlkit.parse(_HEAD if content is None else content)
        apply(document, old)
        new = tomlkit.dumps(document).encode()
        try:
            parse(new, path)
        except BadContext as error:
            # The file on disk was valid: the line says nothing to the user.
            raise BadContext(str(error).partition(": ")[2]) from None
        write(path, new)
    return path


def _existing(old: ContextFile | None, name: str, environ: Mapping[str, str]) -> Context:
    if old is None or name not in old.contexts:
        raise NotFound(f"there is no context {name!r} in {user_file(environ)}")
    return old.contexts[name]


def _tables(document: TOMLDocument) -> Any:
    import tomlkit

    if CONTEXTS not in document:
        document.append(CONTEXTS, tomlkit.table(is_super_table=True))
    return document[CONTEXTS]


def _set(table: Table, properties: Mapping[str, Value]) -> None:
    import tomlkit

    for name, value in properties.items():
        table.append(tomlkit.key(name.split(".")) if "." in name else name, _item(name, value))


def _item(name: str, value: Value) -> Any:
    import shlex

    import tomlkit

    if isinstance(value, Reference):
        what = shlex.join(value.what) if value.kind == "command" else value.what[0]
        return tomlkit.inline_table().append(value.kind, what)
    if isinstance(value, Secret):
        return tomlkit.string(value.reveal())
    if name in (READ_ONLY, CONFIRM) and value in ("true", "false"):
        return tomlkit.boolean(value)
    if name == TIMEOUT:
        try:
            return float(value) if not float(value).is_integer() else int(float(value))
        except ValueError:
            return value
    return value


def _find(table: Any, name: str) -> tuple[Any, str] | None:
    """The table that holds the setting, and its key there: dotted keys may be written in several ways."""
    if name in table:
        return table, name
    for place in range(len(name)):
        head, tail = name[:place], name[place + 1 :]
        if name[place] == "." and head in table and hasattr(table[head], "keys"):
            found = _find(table[head], tail)
            if found is not None:
                return found
    return None


def _replaced(table: Any, name: str, value: Value) -> bool:
    """Replace in place, which keeps the comment of the line."""
    found = _find(table, name)
    if found is None:
        return False
    holder, key = found
    holder[key] = _item(name, value)
    return True


def _remove(table: Any, name: str) -> None:
    found = _find(table, name)
    assert found is not None
    holder, key = found
    del holder[key]
