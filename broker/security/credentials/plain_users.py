"""PLAIN users: `user_NAME="PASSWORD"` options of a login module, and a file of NAME=PASSWORD lines."""

from __future__ import annotations

from broker.security.credentials.errors import BadCredentials
from broker.security.credentials.watched_file import WatchedFile
from broker.security.jaas import PLAIN, LoginModule
from broker.security.secret import Secret

PREFIX = "user_"


class PlainUsers:
    """The users of one listener. Those in the file win; a changed file takes effect at the next login."""

    def __init__(self, module: LoginModule | None, file: str | None) -> None:
        """Raises BadCredentials."""
        if module is not None and module.name != PLAIN:
            raise BadCredentials(f"PLAIN needs {PLAIN}, not {module.name}")
        options = module.options if module is not None else {}
        self._users = {name.removeprefix(PREFIX): value for name, value in options.items() if name.startswith(PREFIX)}
        self._file = WatchedFile(file, _parse) if file else None

    def find(self, user: str) -> Secret | None:
        """The password of a user."""
        in_file = self._file.content().get(user) if self._file is not None else None
        return in_file if in_file is not None else self._users.get(user)

    def __len__(self) -> int:
        return len(self._users) + (len(self._file.content()) if self._file is not None else 0)


def _parse(text: str) -> dict[str, Secret]:
    """Lines of NAME=PASSWORD; empty lines and those that start with # do not count. Errors never repeat a line."""
    users = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, separator, password = line.partition("=")
        if not separator or not name.strip() or not password.strip():
            raise ValueError(f"line {number} is not NAME=PASSWORD")
        users[name.strip()] = Secret(password.strip())
    return users
