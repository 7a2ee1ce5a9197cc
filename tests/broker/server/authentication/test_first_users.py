"""`--add-scram`: a broker whose only listener needs SASL has a first user."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from broker.security.sasl import scram
from broker.security.secret import Secret
from tests.harness import sasl_conversations as sasl
from tests.harness.broker_program import refused, started
from tests.harness.wire_client import WireClient

OPTIONS = ("--override", "sasl.enabled.mechanisms=SCRAM-SHA-512")


def login(address: str, password: str) -> str:
    host, port = address.rsplit(":", 1)
    with WireClient((host, int(port))) as client:
        sasl.SCRAM_512(client)
        return sasl.through(lambda: scram.client("SCRAM-SHA-512", "alice", Secret(password), nonce="n"))(client)


def test_a_start_adds_users_and_sets_their_passwords(tmp_path: Path) -> None:
    file = tmp_path / "password"
    user = f"SCRAM-SHA-512=[name=alice,password-file={file},iterations=8192]"
    for password in ("one", "two"):
        file.write_text(f"{password}\n")
        with started(tmp_path / "d", *OPTIONS, "--add-scram", user, listen="SASL_PLAINTEXT://127.0.0.1:0") as program:
            assert login(program.ready().address, password) == "complete, 0 ms"
            assert login(program.ready().address, "three").startswith("58 ")
    with started(tmp_path / "d", *OPTIONS, listen="SASL_PLAINTEXT://127.0.0.1:0") as program:
        assert login(program.ready().address, "two") == "complete, 0 ms"
    assert not re.search("one|two", (tmp_path / "d" / "broker.log").read_text())


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("SCRAM-SHA-512=[name=alice,password=hidden]", "visible to other users"),
        ("SCRAM-SHA-1=[name=alice,password-file=hidden]", "must be SCRAM-SHA-512="),
        ("hidden", "must be SCRAM-SHA-512="),
        ("SCRAM-SHA-512=[name=alice]", "must be SCRAM-SHA-512="),
        ("SCRAM-SHA-512=[name=alice,password-file=/absent,iterations=1]", "from 4096 to 16384"),
        ("SCRAM-SHA-512=[name=alice,password-file=/absent]", "/absent: No such file"),
        ("SCRAM-SHA-512=[name=alice,password-file=/dev/null]", "must be the password"),
    ],
)
def test_a_user_that_cannot_be_added_stops_the_start(tmp_path: Path, user: str, message: str) -> None:
    code, line = refused(tmp_path / "d", "--add-scram", user)
    assert code == 2
    assert message in line
    assert "hidden" not in line
