"""Values of settings: texts, and references to secrets, which are resolved only when a connection is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from broker.light_dataclasses import dataclass
from broker.security.secret import Secret
from kgctl.contexts.names import BadContext

KINDS = ("env", "file", "command", "keyring")
HIDDEN = "***"
_COMMAND_SECONDS = 60
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a secret comes from. `what` is the variable, the file, the words of the command, or SERVICE/USER."""

    kind: str
    what: tuple[str, ...]
    folder: Path

    def __str__(self) -> str:
        import shlex

        return f"{self.kind} {shlex.join(self.what) if self.kind == 'command' else self.what[0]}"

    def resolve(self, name: str, environ: Mapping[str, str]) -> Secret:
        """The secret; `name` is the setting that needs it. Raises BadContext."""
        try:
            return Secret(_READERS[self.kind](self, environ))
        except _Unavailable as error:
            raise BadContext(f"{name}: {error}") from None


Value: TypeAlias = "str | Secret | Reference"


class _Unavailable(Exception):
    """Why a secret cannot be had. Never contains any of it."""


def reference(kind: str, what: object, folder: Path) -> Reference:
    """Raises ValueError, which says what to write."""
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not one of {', '.join(KINDS)}")
    if not isinstance(what, str) or not what:
        raise ValueError(f'write {{ {kind} = "..." }}')
    if kind == "keyring" and not all(what.rpartition("/")):
        raise ValueError('write { keyring = "SERVICE/USER" }')
    words = [what]
    if kind == "command":
        import shlex

        try:
            words = shlex.split(what)
        except ValueError:
            raise ValueError("the command has an open quotation") from None
        if not words:
            raise ValueError("the command is empty")
    return Reference(kind, tuple(words), folder)


def shown(name: str, value: Value, *, is_secret: bool) -> str:
    """The value for people: a secret is hidden, the place of a secret is not."""
    if isinstance(value, Reference):
        return str(value)
    return HIDDEN if is_secret or isinstance(value, Secret) else value


def located(text: str, folder: Path) -> str:
    """A path as written in a file of this folder: `~` is the home folder, relative paths start at the folder."""
    return str(folder / Path(text).expanduser())


def _from_environment(source: Reference, environ: Mapping[str, str]) -> str:
    text = environ.get(source.what[0])
    if not text:
        raise _Unavailable(f"the environment variable {source.what[0]} is not set")
    return text


def _from_file(source: Reference, environ: Mapping[str, str]) -> str:
    path = located(source.what[0], source.folder)
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise _Unavailable(f"cannot read the secret from {path}: {error.strerror}") from None
    return _text(content, path)


def _from_command(source: Reference, environ: Mapping[str, str]) -> str:
    import subprocess

    program = source.what[0]
    try:
        done = subprocess.run(
            source.what,
            cwd=source.folder if source.folder.is_dir() else None,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _Unavailable(f"the command {program!r} gave no secret within {_COMMAND_SECONDS} s") from None
    except (OSError, ValueError) as error:
        raise _Unavailable(f"cannot run the command {program!r}: {getattr(error, 'strerror', None) or error}") from None
    if done.returncode:
        raise _Unavailable(f"the command {program!r} failed with exit code {done.returncode}")
    return _text(done.stdout, f"the output of the command {program!r}")


def _from_keyring(source: Reference, environ: Mapping[str, str]) -> str:
    service, _, user = source.what[0].rpartition("/")
    try:
        import keyring
        import keyring.errors
    except ImportError:
        raise _Unavailable("secrets of the system keyring need pip install 'kgctl[keyring]'") from None
    try:
        text = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:
        raise _Unavailable(f"the system keyring cannot be read: {type(error).__name__}") from None
    if not text:
        raise _Unavailable(f"the system keyring has no password for {service!r} and user {user!r}")
    return text


def _text(content: bytes, place: str) -> str:
    """The content without the end of its last line."""
    try:
        text = content.decode("utf-8") if len(content) <= _MAX_BYTES else ""
    except UnicodeDecodeError:
        raise _Unavailable(f"the secret of {place} is not UTF-8") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise _Unavailable(f"{place} is empty" if len(content) <= _MAX_BYTES else f"{place} holds more than a secret")
    return text


_READERS = {"env": _from_environment, "file": _from_file, "command": _from_command, "keyring": _from_keyring}


def is_private(path: Path) -> bool:
    """Whether only this user, and root, can read the file."""
    found = os.stat(path)
    return not found.st_mode & 0o077 and found.st_uid in (os.geteuid(), 0)
