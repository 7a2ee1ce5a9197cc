"""DescribeUserScramCredentials and AlterUserScramCredentials, with the answers of Kafka's ScramControlManager (KIP-554)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.light_named_tuples import NamedTuple
from broker.protocol.acls import Operation
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
from broker.server.declaration import Declaration
from broker.server.guards import on_cluster

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.security.credentials.scram_users import ScramUsers
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

MECHANISMS = {number: name for name, number in scram.TYPES.items()}


class _Refused(NamedTuple):
    code: ErrorCode
    message: str


_TWICE = _Refused(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
_ABSENT = _Refused(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
_NO_NAME = _Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_NO_PASSWORD = _Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password must not be empty")
_UNKNOWN = _Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
_TOO_FEW = _Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
_TOO_MANY = _Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def describe(
    request: DescribeUserScramCredentialsRequest, exchange: Exchange, resources: Resources
) -> DescribeUserScramCredentialsResponse:
    users = resources.scram_users()
    asked = Counter(user.name for user in request.users) if request.users else Counter(users.names())
    return DescribeUserScramCredentialsResponse(
        error_message="", results=[_described(users, name, times) for name, times in asked.items()]
    )


def _described(users: ScramUsers, name: str, times: int) -> DescribeUserScramCredentialsResponse.Result:
    credentials = users.of(name)
    code, message = ErrorCode.NONE, ""
    if times > 1:
        code = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    elif not credentials:
        code = ErrorCode.RESOURCE_NOT_FOUND
        message = f"Attempt to describe a user credential that does not exist: {name}"
    return DescribeUserScramCredentialsResponse.Result(
        user=name,
        error_code=code,
        error_message=message,
        credential_infos=[
            DescribeUserScramCredentialsResponse.CredentialInfo(
                mechanism=scram.TYPES[mechanism], iterations=kept.iterations
            )
            for mechanism, kept in sorted(credentials.items())
            if code == ErrorCode.NONE
        ],
    )


def alter(
    request: AlterUserScramCredentialsRequest, exchange: Exchange, resources: Resources
) -> AlterUserScramCredentialsResponse:
    """All changes of one user succeed or fail together; a user with two changes gets none."""
    users = resources.scram_users()
    refused: dict[str, _Refused | None] = {}
    changes: dict[str, Callable[[], None]] = {}

    def note(name: str, refusal: _Refused | None, change: Callable[[], None]) -> None:
        if name in refused:
            refused[name] = refused[name] or _TWICE
            changes.pop(name, None)
        else:
            refused[name] = refusal
            if refusal is None:
                changes[name] = change

    for deletion in request.deletions:
        note(deletion.name, _check_deletion(deletion, users), lambda asked=deletion: _delete(asked, users))  # type: ignore[misc]
    for upsertion in request.upsertions:
        note(upsertion.name, _check_upsertion(upsertion), lambda asked=upsertion: _upsert(asked, users))  # type: ignore[misc]
    for change in changes.values():
        change()
    return AlterUserScramCredentialsResponse(results=[_altered(name, found) for name, found in refused.items()])


def _altered(name: str, refusal: _Refused | None) -> AlterUserScramCredentialsResponse.Result:
    if refusal is None:
        return AlterUserScramCredentialsResponse.Result(user=name)
    return AlterUserScramCredentialsResponse.Result(user=name, error_code=refusal.code, error_message=refusal.message)


def _check_deletion(asked: AlterUserScramCredentialsRequest.Deletion, users: ScramUsers) -> _Refused | None:
    if not asked.name:
        return _NO_NAME
    if asked.mechanism not in MECHANISMS:
        return _UNKNOWN
    return None if users.find(MECHANISMS[asked.mechanism], asked.name) is not None else _ABSENT


def _check_upsertion(asked: AlterUserScramCredentialsRequest.Upsertion) -> _Refused | None:
    if not asked.name:
        return _NO_NAME
    if asked.mechanism not in MECHANISMS:
        return _UNKNOWN
    if asked.iterations < scram.MIN_ITERATIONS:
        return _TOO_FEW
    if asked.iterations > scram.MAX_ITERATIONS:
        return _TOO_MANY
    return None if asked.salted_password else _NO_PASSWORD


def _delete(asked: AlterUserScramCredentialsRequest.Deletion, users: ScramUsers) -> None:
    users.delete(asked.name, MECHANISMS[asked.mechanism])


def _upsert(asked: AlterUserScramCredentialsRequest.Upsertion, users: ScramUsers) -> None:
    mechanism = MECHANISMS[asked.mechanism]
    credential = scram.credential_from(mechanism, asked.salted_password, asked.salt, asked.iterations)
    users.put(asked.name, mechanism, credential)


def _describe_denied(request: DescribeUserScramCredentialsRequest, code: ErrorCode) -> Message:
    # Kafka's rows have no names here.
    rows = [DescribeUserScramCredentialsResponse.Result(user="", error_code=code) for _ in request.users or ()]
    return DescribeUserScramCredentialsResponse(error_code=code, results=rows)


def _alter_denied(request: AlterUserScramCredentialsRequest, code: ErrorCode) -> Message:
    names = dict.fromkeys([*(entry.name for entry in request.deletions), *(entry.name for entry in request.upsertions)])
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResponse.Result(user=name, error_code=code, error_message=code.meaning)
            for name in names
        ]
    )


REQUESTS = (
    Declaration(DescribeUserScramCredentialsRequest, describe, on_cluster(Operation.DESCRIBE, _describe_denied)),
    Declaration(AlterUserScramCredentialsRequest, alter, on_cluster(Operation.ALTER, _alter_denied)),
)
