"""Consent to project files: a file counts only if the user has trusted this path with exactly this content.

A project file arrives with a clone or an archive. It could send commands to another cluster, or run a command for a
secret.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from kgctl.contexts.context_file import ContextFile, parse
from kgctl.contexts.names import BadContext
from kgctl.contexts.places import PROJECT_FILE, consents_file, project_file, user_folder
from kgctl.contexts.private_files import one_writer, read_bytes, write


def read_project(path: Path, environ: Mapping[str, str]) -> tuple[ContextFile | None, str | None]:
    """A trusted project file, or a sentence that says why it is ignored. A trusted file that is not valid raises BadContext."""
    try:
        content = read_bytes(path)
    except BadContext as error:
        return None, f"{error}; it is ignored"
    if content is None:
        return None, None
    known = _consents(environ).get(str(path))
    if known == _digest(content):
        # Parsed from the bytes that were compared: the file may change at any time.
        return parse(content, path, with_choice=True), None
    why = "has changed since you trusted it" if known else "is not trusted"
    return None, f"{path} {why} and is ignored; read it, then run `kgctl context trust`"


def trust(path: Path, environ: Mapping[str, str]) -> ContextFile:
    """Remember consent to the file as it is now. Raises BadContext if it is missing or not valid."""
    content = read_bytes(path)
    if content is None:
        raise BadContext(f"there is no file {path}")
    found = parse(content, path, with_choice=True)
    _store(environ, str(path), _digest(content))
    return found


def distrust(path: Path, environ: Mapping[str, str]) -> bool:
    """Forget the consent; whether there was one."""
    return _store(environ, str(path), None)


def named_project(given: Path | None, folder: Path) -> Path:
    """The project file that the user means: a file, a folder, or the nearest one. Raises BadContext."""
    if given is None:
        found = project_file(folder)
        if found is None:
            raise BadContext(f"there is no {PROJECT_FILE} in {folder} or above it")
        return found
    path = folder / given
    # Without links in the folders, as the search from the working directory finds it.
    path = path / PROJECT_FILE if path.is_dir() else path
    if path.name != PROJECT_FILE:
        raise BadContext(f"{given} is not a {PROJECT_FILE}")
    return path.parent.resolve() / path.name


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _consents(environ: Mapping[str, str]) -> dict[str, str]:
    """Digests by path."""
    content = read_bytes(consents_file(environ)) or b""
    lines = [line.partition(" ") for line in content.decode("utf-8", "surrogateescape").split("\n")]
    return {path: digest for digest, space, path in lines if space}


def _store(environ: Mapping[str, str], path: str, digest: str | None) -> bool:
    if "\n" in path or "\r" in path:
        raise BadContext(f"cannot trust {path!r}: its path has a line break")
    with one_writer(user_folder(environ)):
        known = _consents(environ)
        was_known = known.pop(path, None) is not None
        if digest is not None:
            known[path] = digest
        lines = [f"{one} {where}\n" for where, one in sorted(known.items())]
        write(consents_file(environ), "".join(lines).encode("utf-8", "surrogateescape"))
    return was_known
