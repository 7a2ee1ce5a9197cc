"""All contexts that exist here: of the project, if its file is trusted, and of the user."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import NotFound
from kgctl.contexts.names import BadContext
from kgctl.contexts.places import current_file, project_file, user_file
from kgctl.contexts.private_files import read_bytes

if TYPE_CHECKING:
    from kgctl.contexts.context_file import Context, ContextFile

PROJECT, USER = "project", "user"


@dataclass(frozen=True, slots=True)
class Book:
    """`note` says why the project's file is ignored. `choice` is the current context, `chosen_in` the file that says so."""

    user: ContextFile | None
    project: ContextFile | None
    note: str | None
    choice: str | None
    chosen_in: Path | None

    def find(self, name: str) -> Context | None:
        """A context is defined by one file as a whole: secrets of one file never go to addresses of another."""
        for file in (self.project, self.user):
            if file is not None and name in file.contexts:
                return file.contexts[name]
        return None

    def names(self) -> list[str]:
        return sorted({name for file in (self.project, self.user) if file is not None for name in file.contexts})

    def missing(self, name: str) -> str:
        """The sentence for a context that does not exist."""
        names = self.names()
        known = f"the contexts are {', '.join(names)}" if names else "there is none yet; see `kgctl context add --help`"
        return f"there is no context {name!r}: {known}"


def open_book(environ: Mapping[str, str]) -> Book:
    """Raises BadContext for a file that is not valid."""
    project, note = _project(environ)
    user = _user(environ)
    if project is not None and project.choice is not None:
        return Book(user, project, note, project.choice, project.path)
    choice = read_choice(environ)
    return Book(user, project, note, choice, current_file(environ) if choice else None)


def existing(name: str, environ: Mapping[str, str] = os.environ) -> Context:
    """The context of this name. Raises NotFound."""
    book = open_book(environ)
    found = book.find(name)
    if found is None:
        raise NotFound(book.missing(name))
    return found


def _project(environ: Mapping[str, str]) -> tuple[ContextFile | None, str | None]:
    folder = working_folder()
    path = project_file(folder) if folder is not None else None
    if path is None:
        return None, None
    from kgctl.contexts.consent import read_project

    return read_project(path, environ)


def _user(environ: Mapping[str, str]) -> ContextFile | None:
    path = user_file(environ)
    if not os.path.lexists(path):
        return None
    from kgctl.contexts.context_file import read_file

    return read_file(path)


def read_choice(environ: Mapping[str, str]) -> str | None:
    """The user's current context."""
    path = current_file(environ)
    content = read_bytes(path)
    if content is None:
        return None
    try:
        return content.decode("utf-8").strip() or None
    except UnicodeDecodeError:
        raise BadContext(f"{path}: the file is not UTF-8") from None


def working_folder() -> Path | None:
    """None if the folder was removed."""
    try:
        return Path(os.getcwd())
    except OSError:
        return None
