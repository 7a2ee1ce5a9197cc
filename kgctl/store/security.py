"""Tables of users and ACLs, without secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kgctl.model.store import StoreAcl, StoreUser
from kgctl.store.offline import Offline


def users(offline: Offline) -> Iterator[StoreUser]:
    for user, text in offline.directory.security_records("scram").items():
        for mechanism, kept in sorted(json.loads(text).items()):
            yield StoreUser(user, mechanism, kept["iterations"])


def acls(offline: Offline) -> Iterator[StoreAcl]:
    for text in offline.directory.security_records("acls"):
        found = json.loads(text)
        yield StoreAcl(
            found["principal"],
            found["host"],
            found["operation"],
            found["permission"],
            found["kind"],
            found["pattern"],
            found["name"],
        )
