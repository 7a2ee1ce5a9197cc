"""Lists SCRAM users, sets their passwords and deletes them (KIP-554)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.light_dataclasses import replace
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from broker.protocol.wire_types import Message
from broker.security.sasl import scram
from broker.security.secret import Secret
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node, chunks
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.changes import DONE, FAILED
from kgctl.model.failure import RowError
from kgctl.model.users import UserChange, UserRow

MECHANISMS = tuple(scram.TYPES)
SALT_BYTES = scram.SALT_BYTES
USERS_PER_REQUEST = 1000
_NAMES = {number: name for name, number in scram.TYPES.items()}


def list_users(cluster: Cluster, users: Sequence[str] = ()) -> Steps[list[UserRow]]:
    """A row for each credential of these users, or of all. A user that does not exist is one row with its error."""
    names = [DescribeUserScramCredentialsRequest.UserName(name=user) for user in dict.fromkeys(users)]
    request = DescribeUserScramCredentialsRequest(users=names or None)
    answer = yield from cluster.ask_any(request, DescribeUserScramCredentialsResponse)
    error = _error("SCRAM users", answer.error_code, answer.error_message, DescribeUserScramCredentialsRequest)
    if error is not None:
        raise error
    rows = [row for found in answer.results for row in _rows(found)]
    return sorted(rows, key=lambda row: (row.user, row.mechanism or ""))


def set_password(
    cluster: Cluster, user: str, mechanism: str, password: Secret, *, iterations: int, salt: bytes
) -> Steps[UserChange]:
    """Create a user, or replace its password. The password itself is not sent: only its salted hash is."""
    upsertion = AlterUserScramCredentialsRequest.Upsertion(
        name=user,
        mechanism=scram.TYPES[mechanism],
        iterations=iterations,
        salt=salt,
        salted_password=scram.salted_password(mechanism, password, salt, iterations),
    )
    plan = [UserChange(user, mechanism, iterations)]
    (row,) = yield from _apply(
        cluster, plan, lambda _: AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])
    )
    return row


def plan_deletion(cluster: Cluster, users: Sequence[str], mechanism: str | None = None) -> Steps[list[UserChange]]:
    """The credentials to delete: those of a mechanism, or all. A user without one is a row with its error."""
    rows = yield from list_users(cluster, users)
    plan = []
    for user in dict.fromkeys(users):
        found = [row for row in rows if row.user == user]
        chosen = [row for row in found if row.error or mechanism in (None, row.mechanism)]
        plan += [
            UserChange(user, row.mechanism, row.iterations, FAILED if row.error else "planned", row.error)
            for row in chosen
        ]
        if not chosen:
            error = RowError("NOT_FOUND", f"user {user!r} has no {mechanism} credential")
            plan.append(UserChange(user, mechanism, status=FAILED, error=error))
    return plan


def delete_users(cluster: Cluster, plan: Sequence[UserChange]) -> Steps[list[UserChange]]:
    """Delete the credentials of the plan; rows that failed in the plan stay as they are."""

    def request(rows: Sequence[UserChange]) -> AlterUserScramCredentialsRequest:
        deletions = [
            AlterUserScramCredentialsRequest.Deletion(name=row.user, mechanism=scram.TYPES[row.mechanism or ""])
            for row in rows
        ]
        return AlterUserScramCredentialsRequest(deletions=deletions, upsertions=[])

    outcome: dict[tuple[str, str | None], UserChange] = {}
    for mechanism in MECHANISMS:
        # A request can change a user only once.
        rows = [row for row in plan if row.mechanism == mechanism and not row.error]
        for row in (yield from _apply(cluster, rows, request)) if rows else []:
            outcome[row.user, row.mechanism] = row
    return [outcome.get((row.user, row.mechanism), row) for row in plan]


def _apply(
    cluster: Cluster,
    rows: Sequence[UserChange],
    request: Callable[[Sequence[UserChange]], AlterUserScramCredentialsRequest],
) -> Steps[list[UserChange]]:
    planned = {row.user: row for row in rows}

    def make(node: Node, users: list[str]) -> list[Batch[str]]:
        return [
            Batch(
                Ask(node.endpoint, request([planned[user] for user in some]), AlterUserScramCredentialsResponse),
                some,
                _read,
            )
            for some in chunks(users, USERS_PER_REQUEST)
        ]

    found = yield from cluster.at_controller(planned, make)
    return [
        replace(row, status=FAILED, error=found[row.user].as_row())
        if isinstance(found[row.user], KgctlError)
        else replace(row, status=DONE)
        for row in rows
    ]


def _read(answer: AlterUserScramCredentialsResponse) -> dict[str, KgctlError | None]:
    return {
        row.user: _error(f"user {row.user!r}", row.error_code, row.error_message, AlterUserScramCredentialsRequest)
        for row in answer.results
    }


def _rows(found: DescribeUserScramCredentialsResponse.Result) -> list[UserRow]:
    error = _error(f"user {found.user!r}", found.error_code, found.error_message, DescribeUserScramCredentialsRequest)
    if error is not None:
        return [UserRow(found.user, None, error=error.as_row())]
    return [
        UserRow(found.user, _NAMES.get(info.mechanism, str(info.mechanism)), info.iterations)
        for info in found.credential_infos
    ]


def _error(about: str, code: int, message: str | None, request: type[Message]) -> BrokerError | None:
    if not code:
        return None
    if code == ErrorCode.RESOURCE_NOT_FOUND:
        message = "there is no such SCRAM user"
    return BrokerError(code, about, message, asked=Asked(request))
