"""SASL conversations on the wire, with the answers of Kafka 4.1: our broker and a real Kafka must both give them.

A conversation is a list of steps. Each step sends one request or token and gives a short text about what came back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from broker.protocol.wire_types import Message
from broker.security.sasl import oauthbearer, scram
from broker.security.sasl.mechanism import SaslClient
from broker.security.secret import Secret
from tests.harness.wire_client import ConnectionClosed, WireClient

MODULES = "org.apache.kafka.common.security"
USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
GENERAL = "Authentication failed during {} due to invalid credentials with SASL mechanism {}"
WRONG = "58 Authentication failed: Invalid username or password"
TOO_LATE = "34 SaslAuthenticate request received after successful authentication"
ALICE, BOB = b"\0alice\0alice-secret", b"\0bob\0bob-secret"

Step = Callable[[WireClient], str]


@dataclass(frozen=True)
class Conversation:
    """`expected` has what each step gives. The connection must end as `ends` says."""

    name: str
    steps: list[Step]
    expected: list[str]
    ends: str

    def hold(self, client: WireClient) -> list[str]:
        found = [step(client) for step in self.steps]
        return [*found, "open" if self.ends == "open" and client.is_quiet() else _end(client)]


def _end(client: WireClient) -> str:
    return "closed" if client.is_closed() else "something else"


def _ask(client: WireClient, request: Message, version: int) -> Any:
    try:
        return client.ask(request, version)
    except ConnectionClosed:
        return None


def handshake(mechanism: str, version: int = 1) -> Step:
    def step(client: WireClient) -> str:
        answer = _ask(client, SaslHandshakeRequest(mechanism=mechanism), version)
        if answer is None:
            return "closed"
        return " ".join([str(answer.error_code), *sorted(answer.mechanisms)] if answer.error_code else ["0"])

    return step


def token(token: bytes, version: int = 2) -> Step:
    def step(client: WireClient) -> str:
        answer = _ask(client, SaslAuthenticateRequest(auth_bytes=token), version)
        if answer is None:
            return "closed"
        if answer.error_code:
            return f"{answer.error_code} {answer.error_message}"
        texts = ["0", answer.error_message, answer.auth_bytes.decode(), f"{answer.session_lifetime_ms} ms"]
        return " ".join(filter(None, texts)).removesuffix(" 0 ms")

    return step


def through(make: Callable[[], SaslClient], change: Callable[[bytes], bytes] = bytes) -> Step:
    """A whole conversation of a mechanism; `change` changes the last token."""

    def step(client: WireClient) -> str:
        side = make()
        sent = side.start()
        for _ in range(3):
            answer = _ask(client, SaslAuthenticateRequest(auth_bytes=sent), 2)
            if answer is None:
                return "closed"
            if answer.error_code:
                return f"{answer.error_code} {answer.error_message}"
            following = side.step(answer.auth_bytes)
            if following is None:
                return f"complete, {answer.session_lifetime_ms} ms" if side.complete else "incomplete"
            sent = change(following)
        return "too long"

    return step


def bare(token: bytes) -> Step:
    def step(client: WireClient) -> str:
        client.send_bytes(len(token).to_bytes(4, "big") + token)
        try:
            return f"bare {client.receive_frame()!r}"
        except ConnectionClosed:
            return "closed"

    return step


def sent(data: bytes) -> Step:
    def step(client: WireClient) -> str:
        client.send_bytes(data)
        return "sent"

    return step


def versions(name: str = "test") -> Step:
    def step(client: WireClient) -> str:
        answer = _ask(client, ApiVersionsRequest(client_software_name=name, client_software_version="1"), 3)
        return "closed" if answer is None else str(answer.error_code)

    return step


def versions_99(client: WireClient) -> str:
    frame = client.frame(ApiVersionsRequest(), 3, answered=False)
    client.send_bytes(frame[:6] + (99).to_bytes(2, "big") + frame[8:])
    return str(int.from_bytes(client.receive_frame()[4:6], "big"))


def metadata(client: WireClient) -> str:
    answer = _ask(client, MetadataRequest(topics=[]), 1)
    return "closed" if answer is None else "served"


def other_version(request: Message, version: int) -> Step:
    def step(client: WireClient) -> str:
        frame = client.frame(request, 1, answered=False)
        client.send_bytes(frame[:6] + version.to_bytes(2, "big") + frame[8:])
        return "sent"

    return step


def _scram(user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> Callable[[], SaslClient]:
    return lambda: scram.client(mechanism, user, Secret(password), nonce="n0nce")


def bearer(text: str, more: str = "") -> bytes:
    return f"n,,\x01auth=Bearer {text}\x01{more}\x01".encode()


ALL = "OAUTHBEARER PLAIN SCRAM-SHA-256 SCRAM-SHA-512"
PLAIN = handshake("PLAIN")
IN = [PLAIN, token(ALICE)]

FIRST = [
    Conversation("good", [PLAIN, token(ALICE, 0), metadata, versions()], ["0", "0", "served", "0"], "open"),
    Conversation("version 1", [PLAIN, token(ALICE, 1)], ["0", "0"], "open"),
    Conversation("versions first", [versions(), PLAIN, token(ALICE)], ["0", "0", "0"], "open"),
    Conversation("bare", [handshake("PLAIN", 0), bare(ALICE), metadata], ["0", "bare b''", "served"], "open"),
    Conversation("bare, wrong password", [handshake("PLAIN", 0), bare(b"\0alice\0x")], ["0", "closed"], "closed"),
    Conversation("request for a bare token", [handshake("PLAIN", 0), token(ALICE)], ["0", "closed"], "closed"),
    Conversation("bare token for a request", [PLAIN, sent(b"\0\0\0\x13" + ALICE)], ["0", "sent"], "closed"),
    Conversation("unknown mechanism 0", [handshake("X", 0)], [f"33 {ALL}"], "closed"),
    Conversation("unknown mechanism 1", [handshake("GSSAPI")], [f"33 {ALL}"], "closed"),
    Conversation("wrong password", [PLAIN, token(b"\0alice\0x")], ["0", WRONG], "closed"),
    Conversation("wrong password 0", [PLAIN, token(b"\0alice\0x", 0)], ["0", WRONG], "closed"),
    Conversation("unknown user", [PLAIN, token(b"\0nobody\0x")], ["0", WRONG], "closed"),
    Conversation("not UTF-8", [PLAIN, token(b"\xff\0alice\0x")], ["0", WRONG], "closed"),
    Conversation(
        "two fields",
        [PLAIN, token(b"\0alice")],
        ["0", "58 Invalid SASL/PLAIN response: expected 3 tokens, got 2"],
        "closed",
    ),
    Conversation(
        "five fields",
        [PLAIN, token(b"\0alice\0a\0b\0c")],
        ["0", "58 Invalid SASL/PLAIN response: expected 3 tokens, got 4"],
        "closed",
    ),
    Conversation(
        "no user", [PLAIN, token(b"\0\0x")], ["0", "58 Authentication failed: username not specified"], "closed"
    ),
    Conversation(
        "no password", [PLAIN, token(b"\0a\0")], ["0", "58 Authentication failed: password not specified"], "closed"
    ),
    Conversation(
        "another identity",
        [PLAIN, token(b"bob" + ALICE)],
        [
            "0",
            "58 Authentication failed: Client requested an authorization id that is different from username",
        ],
        "closed",
    ),
    Conversation("request at first", [metadata], ["closed"], "closed"),
    Conversation("token at first", [token(ALICE)], ["closed"], "closed"),
    Conversation("request after versions", [versions(), metadata], ["0", "closed"], "closed"),
    Conversation("versions twice", [versions(), versions()], ["0", "closed"], "closed"),
    Conversation("invalid versions twice", [versions(""), versions(""), PLAIN], ["42", "42", "0"], "open"),
    Conversation("unknown version of versions", [versions_99, versions(), PLAIN], ["35", "0", "0"], "open"),
    Conversation("versions for a token", [PLAIN, versions()], ["0", "34"], "closed"),
    Conversation("handshake twice", [PLAIN, PLAIN], ["0", "34"], "closed"),
    Conversation(
        "unknown version of a handshake",
        [other_version(SaslHandshakeRequest(mechanism="PLAIN"), 5)],
        ["sent"],
        "closed",
    ),
    Conversation(
        "unknown version of a token",
        [PLAIN, other_version(SaslAuthenticateRequest(auth_bytes=ALICE), 5)],
        ["0", "sent"],
        "closed",
    ),
    Conversation("a frame too large", [sent((524289).to_bytes(4, "big"))], ["sent"], "closed"),
    Conversation("a large frame begins", [sent((524288).to_bytes(4, "big"))], ["sent"], "open"),
    Conversation("a negative size", [sent(b"\xff\xff\xff\xff")], ["sent"], "closed"),
    Conversation("an empty frame", [sent(b"\0\0\0\0")], ["sent"], "closed"),
    Conversation("a short frame", [sent(b"\0\0\0\x03abc")], ["sent"], "closed"),
    Conversation("HTTP", [sent(b"GET / HTTP/1.1\r\n\r\n")], ["sent"], "closed"),
    Conversation("a token too late", [*IN, token(ALICE), token(ALICE, 0)], ["0", "0", TOO_LATE, TOO_LATE], "open"),
]

SCRAM_256, SCRAM_512 = handshake("SCRAM-SHA-256"), handshake("SCRAM-SHA-512")
REFUSED_256 = "58 " + GENERAL.format("authentication", "SCRAM-SHA-256")
SCRAM = [
    Conversation("256", [SCRAM_256, through(_scram("alice", "alice-secret"))], ["0", "complete, 0 ms"], "open"),
    Conversation(
        "512",
        [SCRAM_512, through(_scram("bob", "bob-secret", "SCRAM-SHA-512")), metadata],
        ["0", "complete, 0 ms", "served"],
        "open",
    ),
    Conversation("wrong password", [SCRAM_256, through(_scram("alice", "x"))], ["0", REFUSED_256], "closed"),
    # Kafka refuses the first token, we the second: the client sees the same error, and not whether the user exists.
    Conversation("unknown user", [SCRAM_256, through(_scram("nobody", "x"))], ["0", REFUSED_256], "closed"),
    Conversation(
        "another identity",
        [SCRAM_256, token(b"n,a=bob,n=alice,r=c")],
        ["0", "58 Authentication failed: Client requested an authorization id that is different from username"],
        "closed",
    ),
    *(
        Conversation(f"{message!r}", [SCRAM_256, token(message)], ["0", REFUSED_256], "closed")
        for message in (
            b"",
            b"n,,",
            b"y,,n=alice,r=c",
            b"n,,n=alice,r=c,tokenauth=true",
            b"n,,n=\xc3\xa4lice,r=c",
            b"n,,n=al=ice,r=c",
        )
    ),
    *(
        Conversation(
            f"last: {name}",
            [SCRAM_256, through(_scram("alice", "alice-secret"), change)],
            ["0", REFUSED_256],
            "closed",
        )
        for name, change in (
            ("binding", lambda last: last.replace(b"c=biws", b"c=eSws")),
            ("nonce", lambda last: last.replace(b"r=n0nce", b"r=nOnce")),
            ("proof", lambda last: last[:-4] + b"AAA="),
            ("junk", lambda last: b"junk"),
        )
    ),
]

BEARER = handshake("OAUTHBEARER")
INVALID = '{"status":"invalid_token"}'
REFUSED_BEARER = "58 " + GENERAL.format("authentication", "OAUTHBEARER")


def token_conversations(make: Callable[..., str]) -> list[Conversation]:
    """OAUTHBEARER with unsecured tokens; `make(subject, lifetime_s, **claims)` makes one."""
    good, refused = make("alice", 3600), ["0", f"0 {INVALID}", f"58 {INVALID}"]
    acknowledged = token(oauthbearer.ACKNOWLEDGEMENT)
    invalid = {
        "expired": make("alice", -5),
        "no subject": make(""),
        "subject is a number": make("alice", 3600, sub=5),
        "not base64": "a.b.c",
        "no token": "abc",
        "signed": good + "AAAA",
        "issued in the future": make("alice", 7200, iat=4e9),
    }
    return [
        *(
            Conversation(name, [BEARER, token(bearer(text)), acknowledged], refused, "closed")
            for name, text in invalid.items()
        ),
        Conversation(
            "a second token",
            [BEARER, token(bearer("abc")), accepted(bearer(good)), metadata],
            ["0", f"0 {INVALID}", "accepted", "served"],
            "open",
        ),
        Conversation("extensions", [BEARER, accepted(bearer(good, "foo=bar\x01"))], ["0", "accepted"], "open"),
        Conversation("bad extension", [BEARER, token(bearer(good, "a1=b\x01"))], ["0", REFUSED_BEARER], "closed"),
        Conversation("junk", [BEARER, token(b"junk")], ["0", REFUSED_BEARER], "closed"),
        Conversation(
            "another identity",
            [BEARER, token(bearer(good).replace(b"n,,", b"n,a=bob,"))],
            [
                "0",
                (
                    "58 Authentication failed: Client requested an authorization id (bob) that is different from the "
                    "token's principal name (alice)"
                ),
            ],
            "closed",
        ),
    ]


def accepted(message: bytes) -> Step:
    """A token whose session lasts until the token expires: an hour after the tests were collected."""

    def step(client: WireClient) -> str:
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=message), 2)
        return "accepted" if 1_800_000 < answer.session_lifetime_ms <= 3_600_000 else str(answer)

    return step


# For a listener with connections.max.reauth.ms=60000.
AGAIN = [
    Conversation("lifetime", [PLAIN, token(ALICE)], ["0", "0 60000 ms"], "open"),
    Conversation("lifetime of a bare token", [handshake("PLAIN", 0), bare(ALICE)], ["0", "bare b''"], "open"),
    Conversation("version 0 has no lifetime", [PLAIN, token(ALICE, 0)], ["0", "0"], "open"),
    Conversation(
        "again, and again too soon",
        [*IN, *IN, *IN, metadata],
        ["0", "0 60000 ms", "0", "0 60000 ms", "34", TOO_LATE, "served"],
        "open",
    ),
    Conversation(
        "another principal",
        [*IN, PLAIN, token(BOB)],
        [
            "0",
            "0 60000 ms",
            "0",
            "58 Cannot change principals during re-authentication from User.alice: User.bob",
        ],
        "closed",
    ),
    Conversation(
        "another mechanism", [*IN, SCRAM_256, token(b"n,,n=alice,r=x")], ["0", "0 60000 ms", "0", "closed"], "closed"
    ),
    Conversation("unknown mechanism", [*IN, handshake("X")], ["0", "0 60000 ms", "closed"], "closed"),
    Conversation("wrong password", [*IN, PLAIN, token(b"\0alice\0x")], ["0", "0 60000 ms", "0", WRONG], "closed"),
    Conversation(
        "request for a bare token",
        [*IN, handshake("PLAIN", 0), token(ALICE)],
        ["0", "0 60000 ms", "0", "closed"],
        "closed",
    ),
    Conversation(
        "wrong SCRAM password",
        [SCRAM_256, through(_scram("alice", "alice-secret")), SCRAM_256, through(_scram("alice", "x"))],
        ["0", "complete, 60000 ms", "0", "58 " + GENERAL.format("re-authentication", "SCRAM-SHA-256")],
        "closed",
    ),
]


def check_that_sessions_end(connect: Callable[[], WireClient], login: list[Step], expected: list[str]) -> None:
    """After connections.max.reauth.ms, a connection closes unless a handshake comes first."""
    kept, asking, knowing = connect(), connect(), connect()
    try:
        for client in (kept, asking, knowing):
            assert [step(client) for step in login] == expected
        # All sessions end at about the same time.
        for client in (asking, knowing):
            while metadata(client) == "served":
                pass
        assert [step(kept) for step in [*login, metadata]] == [*expected, "served"]
    finally:
        for client in (kept, asking, knowing):
            client.close()


LOGIN_512 = [SCRAM_512, through(_scram("bob", "bob-secret", "SCRAM-SHA-512"))]


# For a PLAINTEXT listener.
PLAINTEXT = [
    Conversation("handshake", [PLAIN, handshake("PLAIN", 0), metadata], ["34", "34", "served"], "open"),
    Conversation("token", [token(ALICE), token(ALICE, 0), metadata], [TOO_LATE, TOO_LATE, "served"], "open"),
]


def options_of(listener: str) -> dict[str, str]:
    """The options of a broker whose listener offers all mechanisms to USERS. SCRAM users must be added."""
    users = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
    prefix = f"listener.name.{listener}"
    return {
        f"{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{prefix}.plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {users};",
    }


def add_scram_users(client: WireClient, salt: bytes = b"salt") -> None:
    upsertion = AlterUserScramCredentialsRequest.Upsertion
    for mechanism, number in scram.TYPES.items():
        answer = client.ask(
            AlterUserScramCredentialsRequest(
                deletions=[],
                upsertions=[
                    upsertion(
                        name=user,
                        mechanism=number,
                        iterations=4096,
                        salt=salt,
                        salted_password=scram.salted_password(mechanism, Secret(password), salt, 4096),
                    )
                    for user, password in USERS.items()
                ],
            )
        )
        assert {row.error_code for row in answer.results} == {ErrorCode.NONE}
