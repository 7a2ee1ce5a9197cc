"""Which cluster a command works on, and how it connects: options, environment, project file, user file, local broker.

The first of these levels that names a cluster decides alone. Levels do not mix: the credentials of a context must not go
to an address that comes from somewhere else. Within a level an address replaces that of its context or file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple
from kgctl.contexts.names import BOOTSTRAP, COLOR, CONFIRM, READ_ONLY, TIMEOUT, BadContext

if TYPE_CHECKING:
    from kgctl.contexts.context_file import Context
    from kgctl.contexts.values import Value

BOOTSTRAP_VARIABLE = "KGCTL_BOOTSTRAP"
CONTEXT_VARIABLE = "KGCTL_CONTEXT"
COMMAND_CONFIG_VARIABLE = "KGCTL_COMMAND_CONFIG"
VARIABLES = (BOOTSTRAP_VARIABLE, CONTEXT_VARIABLE, COMMAND_CONFIG_VARIABLE)
_ADDRESS_WORDS = ("--bootstrap", BOOTSTRAP_VARIABLE)
LOCAL, DEFAULT = "the running local broker", "default"


class Given(NamedTuple):
    """What one level names, and how to call the three in messages."""

    bootstrap: str | None = None
    context: str | None = None
    command_config: str | None = None
    words: tuple[str, str, str] = ("--bootstrap", "--context", "--command-config")

    @property
    def names_a_cluster(self) -> bool:
        return any(value is not None for value in self[:3])


class Sourced(NamedTuple):
    """A value and where it comes from, for people."""

    value: Value
    source: str


@dataclass(frozen=True)
class Target:
    """`name` is the context, None without one. `folder` is where relative paths of its values start, None for as they are.

    `notes` are sentences about what is ignored in files, or files that are; `unsafe` says why its literal secrets may not be used.
    """

    name: str | None
    chosen_by: str
    values: Mapping[str, Sourced]
    folder: Path | None = None
    notes: tuple[str, ...] = ()
    unsafe: str | None = None
    java_file: Path | None = None

    def text(self, name: str) -> str | None:
        found = self.values.get(name)
        return found.value if found is not None and isinstance(found.value, str) else None

    @property
    def is_read_only(self) -> bool:
        return self.text(READ_ONLY) == "true"

    @property
    def must_confirm(self) -> bool:
        return self.text(CONFIRM) == "true"

    @property
    def color(self) -> str | None:
        return self.text(COLOR)

    @property
    def timeout(self) -> float | None:
        found = self.text(TIMEOUT)
        return None if found is None else float(found)

    @property
    def command_options(self) -> tuple[str, ...]:
        """The options with which another command works on the same cluster; empty if its address is enough."""
        options = ("--context", self.name) if self.name else ()
        options = ("--command-config", str(self.java_file)) if self.java_file else options
        if not options or self.values[BOOTSTRAP].source not in _ADDRESS_WORDS:
            return options
        return (*options, "--bootstrap", self.text(BOOTSTRAP) or "")

    @property
    def advice(self) -> str:
        """What to do if nothing listens at the address."""
        source = self.values[BOOTSTRAP].source
        if source in (LOCAL, DEFAULT):
            return "Start a local broker with `kgctl broker start`, or name a cluster with --bootstrap HOST:PORT."
        return (
            f"Check the address given with {source}." if source.startswith("--") else f"Check the address in {source}."
        )


def choose(options: Given, environ: Mapping[str, str] = os.environ) -> Target:
    """Decide. Reads files, resolves no secret and opens no connection. Raises BadContext."""
    variables = Given(
        environ.get(BOOTSTRAP_VARIABLE) or None,
        environ.get(CONTEXT_VARIABLE) or None,
        environ.get(COMMAND_CONFIG_VARIABLE) or None,
        words=VARIABLES,
    )
    if options.names_a_cluster:
        return _of_level(options, environ)
    if variables.names_a_cluster:
        return _of_level(variables, environ)
    return _of_files(environ)


def only_cluster(bootstrap: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a kgctl that works on this plaintext cluster, whatever contexts there are."""
    return {name: text for name, text in environ.items() if name not in VARIABLES} | {BOOTSTRAP_VARIABLE: bootstrap}


def _of_level(given: Given, environ: Mapping[str, str]) -> Target:
    bootstrap_word, context_word, file_word = given.words
    if given.context is not None and given.command_config is not None:
        raise BadContext(f"{context_word} and {file_word} exclude each other: both say how to connect")
    if given.context is not None:
        found = _of_context(given.context, context_word, environ)
    elif given.command_config is not None:
        if not given.command_config:
            raise BadContext(f"{file_word} is empty: name a client.properties")
        found = _of_java_file(Path(given.command_config), file_word)
    else:
        found = Target(None, bootstrap_word, {})
    values = dict(found.values)
    if given.bootstrap is not None:
        values[BOOTSTRAP] = Sourced(given.bootstrap, bootstrap_word)
    elif BOOTSTRAP not in values:
        values[BOOTSTRAP] = local = _local(environ)
        if found.java_file is not None:
            found = _noted(found, f"{found.java_file} names no bootstrap.servers, so {local.value} is used")
    return _with(found, values)


def _noted(target: Target, sentence: str) -> Target:
    from broker.light_dataclasses import replace

    return replace(target, notes=(*target.notes, sentence))


def _of_context(name: str, word: str, environ: Mapping[str, str]) -> Target:
    from kgctl.contexts.book import open_book

    book = open_book(environ)
    context = book.find(name)
    if context is None:
        hint = f" ({book.note})" if book.note else ""
        raise BadContext(f"{word}: {book.missing(name)}{hint}")
    return of_context(context, word, (book.note,) if book.note else ())


def of_context(context: Context, chosen_by: str, notes: tuple[str, ...] = ()) -> Target:
    """The target that a context describes, without an address if the context has none."""
    values = {name: Sourced(value, context.where(name)) for name, value in context.settings.items()}
    return Target(context.name, chosen_by, values, context.path.parent, notes, _unsafe(context))


def _of_java_file(path: Path, word: str) -> Target:
    from kgctl.contexts.java_properties import misspelt_in, read_java_file

    settings, lines = read_java_file(path)
    values = {name: Sourced(value, f"{path}, line {lines[name]}") for name, value in settings.items()}
    return Target(None, word, values, notes=tuple(misspelt_in(path)), java_file=path)


def _of_files(environ: Mapping[str, str]) -> Target:
    from kgctl.contexts.book import open_book

    book = open_book(environ)
    notes = (book.note,) if book.note else ()
    if book.choice is None:
        return _of_local_broker(environ, notes)
    context = book.find(book.choice)
    if context is None:
        raise BadContext(
            f"{book.chosen_in} names a context that does not exist: {book.missing(book.choice)}; "
            "choose one with `kgctl context use`"
        )
    found = of_context(context, str(book.chosen_in), notes)
    return _with(found, {BOOTSTRAP: _local(environ), **found.values})


def _of_local_broker(environ: Mapping[str, str], notes: tuple[str, ...]) -> Target:
    from kgctl.contexts.local_broker import local_client_properties

    path = local_client_properties(environ)
    values = {} if path is None else dict(_of_java_file(path, LOCAL).values)
    # The file has the address of the listener that it is for, which may not be the first one.
    return Target(None, "no context", {BOOTSTRAP: _local(environ), **values}, notes=notes)


def _with(target: Target, values: Mapping[str, Sourced]) -> Target:
    from broker.light_dataclasses import replace

    return replace(target, values=values)


def _local(environ: Mapping[str, str]) -> Sourced:
    from kgctl.contexts.local_broker import FALLBACK, local_broker

    found = local_broker(environ)
    return Sourced(FALLBACK, DEFAULT) if found is None else Sourced(found, LOCAL)


def _unsafe(context: Context) -> str | None:
    """Why the literal secrets of a context may not be used."""
    from kgctl.contexts.values import is_private

    secrets = context.literal_secrets
    try:
        if not secrets or is_private(context.path):
            return None
    except OSError:
        pass
    return f"{context.where(secrets[0])}: {secrets[0]} is a secret in a file that others can read: chmod 600 {context.path}"
