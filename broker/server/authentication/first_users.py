"""SCRAM users that a start adds (`--add-scram`), so that a broker without a PLAINTEXT listener can have a first user."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from broker.config.option import ConfigError
from broker.light_named_tuples import NamedTuple
from broker.security.credentials.scram_users import ScramUsers, set_password
from broker.security.sasl import scram
from broker.security.secret import Secret

if TYPE_CHECKING:
    from broker.storage import Log

logger = logging.getLogger("broker.server")

FORM = "SCRAM-SHA-512=[name=NAME,password-file=FILE]"
_SPECIFICATION = re.compile(r"(?P<mechanism>[^=\[\]]+)=\[(?P<fields>[^\[\]]*)\]")


class FirstUser(NamedTuple):
    name: str
    mechanism: str
    password: Secret
    iterations: int


class FirstUsers:
    """The users that the arguments of a start add."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Raises ConfigError."""
        self._users = [read_first_user(text) for text in texts]

    def add_to(self, log: Log) -> None:
        """Add the users, or replace their credentials, and flush."""
        stored = ScramUsers(log.security_records)
        for user in self._users:
            set_password(stored, user.name, user.mechanism, user.password, user.iterations)
        log.flush()
        names = ", ".join(f"{user.name} ({user.mechanism})" for user in self._users)
        logger.info("added SCRAM users: %s", names)


def read_first_user(text: str) -> FirstUser:
    """A user in the form of Kafka's `kafka-storage format --add-scram`, with a file instead of the password itself.

    Raises ConfigError, which never repeats the text: it may hold a password.
    """
    found = _SPECIFICATION.fullmatch(text.strip())
    if found is None or found["mechanism"] not in scram.TYPES:
        raise ConfigError(f"--add-scram: must be {FORM}, with {' or '.join(scram.TYPES)}")
    fields = dict(field.strip().partition("=")[::2] for field in found["fields"].split(","))
    if "password" in fields:
        raise ConfigError("--add-scram: a password in the arguments is visible to other users: give password-file=FILE")
    unknown = fields.keys() - {"name", "password-file", "iterations"}
    if unknown or not fields.get("name") or not fields.get("password-file"):
        raise ConfigError(f"--add-scram: must be {FORM}; iterations=N is optional")
    iterations = fields.get("iterations", str(scram.MIN_ITERATIONS))
    if not (iterations.isascii() and iterations.isdigit()):
        raise ConfigError("--add-scram: iterations is not a whole number")
    if not scram.MIN_ITERATIONS <= int(iterations) <= scram.MAX_ITERATIONS:
        raise ConfigError(f"--add-scram: iterations must be from {scram.MIN_ITERATIONS} to {scram.MAX_ITERATIONS}")
    return FirstUser(fields["name"], found["mechanism"], _password_in(fields["password-file"]), int(iterations))


def _password_in(file: str) -> Secret:
    """The first line of a file."""
    try:
        text = Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"--add-scram: cannot read the password in {file}: {reason}") from None
    password = text.split("\n", 1)[0].removesuffix("\r")
    if not password:
        raise ConfigError(f"--add-scram: the first line of {file} is empty: it must be the password")
    return Secret(password)
