"""AlterUserScramCredentials and DescribeUserScramCredentials: answers as Kafka's, kept in the store, effective at the next login."""

from __future__ import annotations

from pathlib import Path

from broker.security.sasl import scram
from broker.security.secret import Secret
from tests.harness import sasl_conversations as sasl
from tests.harness import scram_requests
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient

LISTENERS = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"


def started(data_dir: Path) -> RunningBroker:
    return RunningBroker(data_dir, listeners=LISTENERS, **sasl.options_of("sasl_plaintext"))


def login(running: RunningBroker, password: str) -> str:
    with running.client("SASL_PLAINTEXT") as client:
        sasl.SCRAM_512(client)
        return sasl.through(lambda: scram.client("SCRAM-SHA-512", "carol", Secret(password), nonce="n"))(client)


def set_password(client: WireClient, password: str) -> None:
    salted = scram.salted_password("SCRAM-SHA-512", Secret(password), b"pepper", 4096)
    changes = [scram_requests.put("carol", 2, salt=b"pepper", salted=salted)]
    assert scram_requests.alter(client, changes) == {"carol": scram_requests.DONE}


def test_answers_are_those_of_kafka(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as running:
        with running.client() as client:
            scram_requests.check_all(client)
        running.restart()
        with running.client() as client:
            assert set(scram_requests.describe(client, None)) == scram_requests.NAMES


def test_a_new_password_and_a_removed_user_take_effect_at_the_next_login(tmp_path: Path) -> None:
    with started(tmp_path) as running, running.client("PLAINTEXT") as client:
        assert login(running, "one").startswith("58 ")
        set_password(client, "one")
        assert login(running, "one") == "complete, 0 ms"
        set_password(client, "two")
        assert login(running, "one").startswith("58 ")
        assert login(running, "two") == "complete, 0 ms"
        running.restart()
        assert login(running, "two") == "complete, 0 ms"
        with running.client("PLAINTEXT") as again:
            assert scram_requests.alter(again, [scram_requests.drop("carol", 2)]) == {"carol": scram_requests.DONE}
        assert login(running, "two").startswith("58 ")


def test_an_unknown_user_gets_the_same_salt_after_a_restart(tmp_path: Path) -> None:
    def salt(running: RunningBroker) -> str:
        with running.client("SASL_PLAINTEXT") as client:
            sasl.SCRAM_512(client)
            return sasl.token(b"n,,n=nobody,r=c")(client).split(",")[1]

    with started(tmp_path) as running:
        with running.client("PLAINTEXT") as client:
            set_password(client, "one")
        before = salt(running)
        running.restart()
        assert salt(running) == before


def test_no_password_or_key_is_written_to_the_store_as_text(tmp_path: Path) -> None:
    with started(tmp_path) as running, running.client("PLAINTEXT") as client:
        set_password(client, "wonderland")
    found = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"carol" in found
    assert b"wonderland" not in found
