"""SCRAM credentials of users."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from broker.security.sasl import scram
from broker.security.secret import Secret
from kgctl.client.net.errors import BrokerError
from kgctl.compat.configs.options import Entity
from kgctl.compat.java_errors import of_code
from kgctl.compat.options import UsageError
from kgctl.compat.tool import Session
from kgctl.journal.items import key_of, passwords_set, users_deleted
from kgctl.journal.results import Outcome
from kgctl.model.items import Item
from kgctl.model.users import UserChange

_Upsertion = AlterUserScramCredentialsRequest.Upsertion
_ITERATIONS = 4096  # the default, and the fewest
_NOT_FOUND = int(ErrorCode.RESOURCE_NOT_FOUND)
_EMPTY = int(ErrorCode.UNACCEPTABLE_CREDENTIAL)
_NAMES = {number: name for name, number in scram.TYPES.items()}


def describe_credentials(session: Session, users: Sequence[str]) -> None:
    names = [DescribeUserScramCredentialsRequest.UserName(name=user) for user in users]
    request = DescribeUserScramCredentialsRequest(users=names or None)
    asked = session.admin.cluster.ask_any(request, DescribeUserScramCredentialsResponse)
    answer = session.run(asked, "describeUserScramCredentials")
    if answer.error_code:
        raise of_code(answer.error_code, answer.error_message).within()
    for row in answer.results:
        if row.error_code == _NOT_FOUND:
            continue
        if row.error_code:
            error = of_code(row.error_code, row.error_message)
            about = f"Error retrieving SCRAM credential configs for user-principal '{row.user}'"
            session.out(f"{about}: ExecutionException: {error}\n")
            continue
        infos = ", ".join(
            f"{_NAMES.get(info.mechanism, 'UNKNOWN')}=iterations={info.iterations}" for info in row.credential_infos
        )
        session.out(f"SCRAM credential configs for user-principal '{row.user}' are {infos}\n")


def alter_credentials(session: Session, entity: Entity, values: Mapping[str, str], removed: Sequence[str]) -> None:
    """Raises JavaError, UsageError."""
    (user,) = entity.names
    upsertions = [_upsertion(user, mechanism, text) for mechanism, text in values.items()]
    deletions = [
        AlterUserScramCredentialsRequest.Deletion(name=user, mechanism=scram.TYPES[mechanism]) for mechanism in removed
    ]
    session.host.may_change([user])
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    mechanisms = [*removed, *values]
    answer = session.change(
        "users set-password" if values else "users delete",
        lambda: _items(session, user, upsertions, removed),
        lambda: session.run(
            session.admin.cluster.ask_any(request, AlterUserScramCredentialsResponse), "alterUserScramCredentials"
        ),
        lambda answer: _outcomes(user, mechanisms, answer),
        "alterUserScramCredentials",
    )
    for row in answer.results:
        if row.error_code:
            raise of_code(row.error_code, row.error_message).within()


def _items(session: Session, user: str, upsertions: Sequence[_Upsertion], removed: Sequence[str]) -> list[Item]:
    known = {row.mechanism: row.iterations for row in session.admin.list_users([user]) if not row.error}
    items = users_deleted(UserChange(user, name, known[name]) for name in removed if name in known)
    for one in upsertions:
        items += passwords_set(session.admin, user, [_NAMES[one.mechanism]], one.iterations)
    return items


def _outcomes(user: str, mechanisms: Sequence[str], answer: AlterUserScramCredentialsResponse) -> list[Outcome]:
    (row,) = answer.results
    error = BrokerError(row.error_code, f"user {user!r}", row.error_message) if row.error_code else None
    return [Outcome.of(key_of(UserChange(user, name)), error) for name in mechanisms]


def _upsertion(user: str, mechanism: str, text: str) -> AlterUserScramCredentialsRequest.Upsertion:
    found = re.fullmatch(r"(?:iterations=(-?\d*),)?password=(.*)", text, re.ASCII)
    if not found:
        raise UsageError(f"Invalid credential property {mechanism.replace('-', '_')}: it needs password=PASSWORD")
    try:
        iterations = _ITERATIONS if found[1] in (None, "-1") else int(found[1])
    except ValueError:
        raise UsageError(f'For input string: "{found[1]}"') from None
    if iterations < _ITERATIONS:
        about = f"is less than the minimum {_ITERATIONS} required for {mechanism}"
        raise UsageError(f"Iterations {iterations} {about}")
    if not found[2]:
        raise of_code(_EMPTY, "Password must not be empty").within()
    salt = os.urandom(scram.SALT_BYTES)
    return AlterUserScramCredentialsRequest.Upsertion(
        name=user,
        mechanism=scram.TYPES[mechanism],
        iterations=iterations,
        salt=salt,
        salted_password=scram.salted_password(mechanism, Secret(found[2]), salt, iterations),
    )
