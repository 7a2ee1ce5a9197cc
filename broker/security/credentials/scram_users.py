"""SCRAM users: their credentials in the store, one security record per user."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Protocol

from broker.security.sasl import scram
from broker.security.sasl.scram import ScramCredential
from broker.security.secret import Secret

KIND = "scram"
# A record of its own: the secret that the salts of unknown users come from.
SECRET_KIND = "scram-secret"
SECRET_BYTES = 32


class Records(Protocol):
    """The security records of a store."""

    def put(self, kind: str, name: str, value: str) -> None: ...
    def delete(self, kind: str, name: str) -> None: ...
    def all(self, kind: str) -> dict[str, str]: ...


class ScramUsers:
    """All SCRAM users. A change takes effect at once and is part of the next flush of the store."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._users = {name: _decoded(value) for name, value in records.all(KIND).items()}
        kept = records.all(SECRET_KIND).get("salt")
        self.secret = bytes.fromhex(kept) if kept is not None else os.urandom(SECRET_BYTES)
        self._has_stored_secret = kept is not None

    def names(self) -> list[str]:
        return sorted(self._users)

    def of(self, user: str) -> Mapping[str, ScramCredential]:
        """The credentials of a user by mechanism; none for an unknown user."""
        return self._users.get(user, {})

    def find(self, mechanism: str, user: str) -> ScramCredential | None:
        return self.of(user).get(mechanism)

    def put(self, user: str, mechanism: str, credential: ScramCredential) -> None:
        if not self._has_stored_secret:
            self._has_stored_secret = True
            self._records.put(SECRET_KIND, "salt", self.secret.hex())
        self._users.setdefault(user, {})[mechanism] = credential
        self._records.put(KIND, user, _encoded(self._users[user]))

    def delete(self, user: str, mechanism: str) -> None:
        """Delete one credential of a user, and with the last one the user. KeyError if there is none."""
        del self._users[user][mechanism]
        if self._users[user]:
            self._records.put(KIND, user, _encoded(self._users[user]))
        else:
            del self._users[user]
            self._records.delete(KIND, user)


def set_password(users: ScramUsers, user: str, mechanism: str, password: Secret, iterations: int) -> None:
    """Store a user with a new salt."""
    users.put(user, mechanism, scram.credential(mechanism, password, os.urandom(scram.SALT_BYTES), iterations))


def _encoded(credentials: Mapping[str, ScramCredential]) -> str:
    texts = {
        mechanism: {
            "iterations": kept.iterations,
            "salt": b64encode(kept.salt).decode(),
            "server_key": b64encode(kept.server_key).decode(),
            "stored_key": b64encode(kept.stored_key).decode(),
        }
        for mechanism, kept in credentials.items()
    }
    return json.dumps(texts, separators=(",", ":"), sort_keys=True)


def _decoded(value: str) -> dict[str, ScramCredential]:
    return {
        mechanism: ScramCredential(
            b64decode(kept["salt"]), b64decode(kept["stored_key"]), b64decode(kept["server_key"]), kept["iterations"]
        )
        for mechanism, kept in json.loads(value).items()
    }
