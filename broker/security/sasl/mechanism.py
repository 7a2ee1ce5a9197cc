"""The two sides of a SASL mechanism: what they take, answer and raise."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from broker.light_named_tuples import NamedTuple


class SaslError(Exception):
    """The conversation fails. The text says why and contains no secret."""


class AuthenticationFailed(SaslError):
    """The server does not accept the client. The text is for the log.

    `shown` is what the client may know, as Kafka words it. None means the same general sentence for every reason, so that it does
    not say whether the user exists.
    """

    def __init__(self, reason: str, *, shown: str | None = None) -> None:
        super().__init__(reason)
        self.shown = shown


# The most characters of a user name that an error repeats.
NAME_CHARACTERS = 100


def wrong_credentials(user: str, *, is_known: bool) -> str:
    """Why a user name and a password do not fit, for the log."""
    return f"{'wrong password for' if is_known else 'unknown'} user {user[:NAME_CHARACTERS]!r}"


class Identity(NamedTuple):
    """Who has authenticated. `expires_at_ms` is the end of the credential in wall-clock milliseconds, if it has one."""

    name: str
    expires_at_ms: int | None = None
    extensions: Mapping[str, str] = MappingProxyType({})


class SaslClient(Protocol):
    """The client's side. `complete` means that the server has proved what the mechanism lets it prove."""

    name: str
    complete: bool

    def start(self) -> bytes:
        """The initial response."""
        ...

    def step(self, challenge: bytes) -> bytes | None:
        """The response to a challenge; None if there is nothing more to send. Raises SaslError."""
        ...


class SaslServer(Protocol):
    """The server's side. `identity` is set once `complete` is. `refusal` says why the last token was refused, if the client
    must acknowledge that before the conversation fails."""

    name: str
    complete: bool
    identity: Identity | None
    refusal: str | None

    def step(self, response: bytes) -> bytes:
        """The next challenge, or the last message, which may be empty. Raises AuthenticationFailed."""
        ...
