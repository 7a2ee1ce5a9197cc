"""JSON web tokens: their parts and claims (RFC 7515, RFC 7519), without signatures."""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode
from typing import Any

from broker.light_named_tuples import NamedTuple
from broker.security.sasl.oauthbearer import TokenRefused
from broker.security.secret import Secret

# Times beyond the year 30000 are no times; neither are NaN and infinity, which JSON in Python allows.
MAX_SECONDS = 1e12


class Token(NamedTuple):
    """A token in its parts. `signed` is what the signature covers."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes

    def seconds(self, name: str) -> float | None:
        """A claim that is a time, in seconds since 1970. Raises TokenRefused if it is not a number."""
        value = self.claims.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MAX_SECONDS:
            raise TokenRefused(f"the claim {name} is not a time")
        return value

    def words(self, name: str) -> list[str]:
        """A claim that is a list, or a text of words. Raises TokenRefused for anything else."""
        value = self.claims.get(name, [])
        found = value.split() if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
            raise TokenRefused(f"the claim {name} is not a list of words")
        return found


def read(token: Secret) -> Token:
    """Raises TokenRefused for a text that is no token."""
    parts = token.reveal().split(".")
    if len(parts) != 3:
        raise TokenRefused("the token is not a JSON web token: it does not have three parts")
    return Token(_object(parts[0]), _object(parts[1]), f"{parts[0]}.{parts[1]}".encode(), decode(parts[2]))


def decode(text: str) -> bytes:
    """Base64 for URLs, without padding."""
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise TokenRefused("a part of the token is not base64") from None


def _object(part: str) -> dict[str, Any]:
    try:
        found = json.loads(decode(part))
    except (ValueError, RecursionError):
        raise TokenRefused("a part of the token is not JSON") from None
    if not isinstance(found, dict):
        raise TokenRefused("a part of the token is not a JSON object")
    return found
