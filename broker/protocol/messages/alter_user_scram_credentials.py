"""AlterUserScramCredentials: set and remove the SCRAM credentials of users (KIP-554)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BYTES, INT8, INT16, INT32, STRING, Message, Struct, wire


class AlterUserScramCredentialsRequest(Message):
    """Passwords travel salted and hashed, never as text."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 51, range(1), 0

    class Deletion(Struct):
        name: str = wire(STRING)
        mechanism: int = wire(INT8)

    class Upsertion(Struct):
        name: str = wire(STRING)
        mechanism: int = wire(INT8)
        iterations: int = wire(INT32)
        salt: bytes = wire(BYTES)
        salted_password: bytes = wire(BYTES)

    deletions: list[Deletion] = wire(ARRAY(Deletion))
    upsertions: list[Upsertion] = wire(ARRAY(Upsertion))


class AlterUserScramCredentialsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 51, range(1), 0

    class Result(Struct):
        user: str = wire(STRING)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)

    throttle_time_ms: int = wire(INT32, default=0)
    results: list[Result] = wire(ARRAY(Result))
