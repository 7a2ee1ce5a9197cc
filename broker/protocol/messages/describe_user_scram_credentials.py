"""DescribeUserScramCredentials: which SCRAM mechanisms users have, and with how many iterations (KIP-554)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, STRING, Message, Struct, wire


class DescribeUserScramCredentialsRequest(Message):
    """No users, or a null list, means all of them."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 50, range(1), 0

    class UserName(Struct):
        name: str = wire(STRING)

    users: list[UserName] | None = wire(ARRAY(UserName), null_since=0)


class DescribeUserScramCredentialsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 50, range(1), 0

    class CredentialInfo(Struct):
        mechanism: int = wire(INT8)
        iterations: int = wire(INT32)

    class Result(Struct):
        user: str = wire(STRING)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = wire(
            ARRAY("CredentialInfo"), default=[]
        )

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    results: list[Result] = wire(ARRAY(Result))
