"""Requests about SCRAM credentials, with the answers of Kafka 4.1: our broker and a real Kafka must both give them."""

from __future__ import annotations

from collections.abc import Sequence

from broker.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from broker.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from tests.harness.wire_client import WireClient

Deletion, Upsertion = AlterUserScramCredentialsRequest.Deletion, AlterUserScramCredentialsRequest.Upsertion
DONE = (0, None)
TWICE = (92, "A user credential cannot be altered twice in the same request")
ABSENT = (91, "Attempt to delete a user credential that does not exist")
NO_NAME = (93, "Username must not be empty")
UNKNOWN = (33, "Unknown SCRAM mechanism")
TOO_FEW, TOO_MANY = (93, "Too few iterations"), (93, "Too many iterations")


def put(
    user: str, mechanism: int = 1, iterations: int = 4096, salt: bytes = b"salt", salted: bytes = b"s" * 32
) -> Upsertion:
    return Upsertion(name=user, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted)


def drop(user: str, mechanism: int = 1) -> Deletion:
    return Deletion(name=user, mechanism=mechanism)


Changes = Sequence[Upsertion | Deletion]
Answer = dict[str, tuple[int, str | None]]

# Changes in their order, with the answers by user. Later ones build on earlier ones.
ALTERATIONS: list[tuple[Changes, Answer]] = [
    ([], {}),
    ([put("u")], {"u": DONE}),
    ([put("u", 2), put("u", 1, 8192)], {"u": TWICE}),
    ([put("u", 2, 8192, salted=b"s" * 64)], {"u": DONE}),
    ([put("v", iterations=0)], {"v": TOO_FEW}),
    ([put("v", iterations=-1)], {"v": TOO_FEW}),
    ([put("v", iterations=4095)], {"v": TOO_FEW}),
    ([put("v", iterations=4096)], {"v": DONE}),
    ([put("v", iterations=16384)], {"v": DONE}),
    ([put("v", iterations=16385)], {"v": TOO_MANY}),
    ([put("v", iterations=2**31 - 1)], {"v": TOO_MANY}),
    *(([put("w", mechanism)], {"w": UNKNOWN}) for mechanism in (-1, 0, 3)),
    ([put("")], {"": NO_NAME}),
    ([put("salt", salt=b"")], {"salt": DONE}),
    ([put("short", salted=b"short")], {"short": DONE}),
    ([put("dup"), put("dup")], {"dup": TWICE}),
    ([put("dup"), put("dup"), put("dup"), put("ok")], {"dup": TWICE, "ok": DONE}),
    ([put("dup"), drop("dup")], {"dup": ABSENT}),
    ([put("v"), drop("v")], {"v": TWICE}),
    ([drop("v"), drop("v")], {"v": TWICE}),
    ([drop("nobody")], {"nobody": ABSENT}),
    ([drop("v", 2)], {"v": ABSENT}),
    ([drop("")], {"": NO_NAME}),
    ([drop("v", 0)], {"v": UNKNOWN}),
    (
        [put("ok2"), put("bad", iterations=1), drop("nobody"), drop("ok")],
        {"ok2": DONE, "bad": TOO_FEW, "nobody": ABSENT, "ok": DONE},
    ),
    ([put("bad", iterations=1), put("bad", 2)], {"bad": TOO_FEW}),
    ([put("bad", 9), put("bad", 2, 1)], {"bad": UNKNOWN}),
    ([put("mix"), drop("mix", 2)], {"mix": ABSENT}),
    ([put("z" * 300)], {"z" * 300: DONE}),
    ([put("ü,=x")], {"ü,=x": DONE}),
    ([drop("u", 1)], {"u": DONE}),
]

# Users to describe afterwards, and what is answered: error, message, and iterations by mechanism.
DESCRIPTIONS = [
    (["u"], {"u": (0, "", {2: 8192})}),
    (["v", "ok2"], {"v": (0, "", {1: 16384}), "ok2": (0, "", {1: 4096})}),
    (["ok"], {"ok": (91, "Attempt to describe a user credential that does not exist: ok", {})}),
    ([""], {"": (91, "Attempt to describe a user credential that does not exist: ", {})}),
    (
        ["v", "v", "ü,=x"],
        {
            "v": (92, "Cannot describe SCRAM credentials for the same user twice in a single request: v", {}),
            "ü,=x": (0, "", {1: 4096}),
        },
    ),
]
NAMES = {"u", "v", "salt", "short", "ok2", "z" * 300, "ü,=x"}


def alter(client: WireClient, changes: Changes) -> Answer:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, Deletion)],
        upsertions=[each for each in changes if isinstance(each, Upsertion)],
    )
    rows = client.ask(request).results
    assert len({row.user for row in rows}) == len(rows)
    return {row.user: (row.error_code, row.error_message) for row in rows}


def describe(client: WireClient, users: Sequence[str] | None) -> dict[str, tuple[int, str | None, dict[int, int]]]:
    names = None if users is None else [DescribeUserScramCredentialsRequest.UserName(name=user) for user in users]
    answer = client.ask(DescribeUserScramCredentialsRequest(users=names))
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        row.user: (
            row.error_code,
            row.error_message,
            {info.mechanism: info.iterations for info in row.credential_infos},
        )
        for row in answer.results
    }


def check_all(client: WireClient) -> None:
    for changes, expected in ALTERATIONS:
        assert alter(client, changes) == expected, changes
    for users, described in DESCRIPTIONS:
        assert describe(client, users) == described
    for everybody in (None, []):
        assert set(describe(client, everybody)) >= NAMES
