"""kgctl on a Kafka that is secured: each protocol and mechanism, and one clear error for each thing that can be wrong."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from kgctl.exit_codes import UNREACHABLE
from kgctl.pipelines.tables.manifest import TableFolder
from tests.harness.certificates import Authority
from tests.harness.commandline import Kgctl
from tests.harness.ports import kept_address
from tests.harness.reference_kafka import Unavailable
from tests.harness.secured_kafka import MECHANISMS, PROTOCOLS, SecuredKafka, unsecured_token

CASES = [("PLAINTEXT", ""), ("SSL", ""), *((protocol, each) for protocol in PROTOCOLS[2:] for each in MECHANISMS)]
# Listeners whose certificate is wrong.
EXPIRED, ELSEWHERE = "EXPIRED", "ELSEWHERE"
SESSION_MS = 1000


class Kafka(SecuredKafka):
    def __init__(self) -> None:
        super().__init__({"connection.failed.authentication.delay.ms": "0"})
        self.addresses |= {name: kept_address() for name in (EXPIRED, ELSEWHERE)}
        certificates = {
            EXPIRED: self.authority.server("old", expired=True),
            ELSEWHERE: self.authority.server("elsewhere", names=["kafka.example"]),
        }
        self._config["listener.security.protocol.map"] += f",{EXPIRED}:SSL,{ELSEWHERE}:SSL"
        self._config["super.users"] += ";User:ANONYMOUS;User:CN=carol,O=kgctl tests"
        # Not of SASL_PLAINTEXT, which is also that of the broker itself.
        self._config["listener.name.sasl_ssl.connections.max.reauth.ms"] = str(SESSION_MS)
        for name, issued in certificates.items():
            self._config[f"listener.name.{name.lower()}.ssl.keystore.location"] = str(issued.bundle)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    try:
        with Kafka() as kafka:
            yield kafka
    except Unavailable as reason:
        pytest.skip(f"no Kafka: {reason}")


Run = Callable[..., Result]


@pytest.fixture
def kgctl(kafka: Kafka, tmp_path: Path) -> Run:
    """Runs `kgctl ARGUMENTS` on a listener with properties of a Java client."""

    def run(listener: str, properties: Mapping[str, str], *arguments: object, text: str | None = None) -> Result:
        return Kgctl(kafka.addresses[listener])(*arguments, *command_config(tmp_path, properties), text=text)

    return run


def command_config(folder: Path, properties: Mapping[str, str]) -> list[object]:
    """The options that name a file with these properties."""
    file = folder / f"{len(list(folder.iterdir()))}.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return ["--command-config", file]


def properties_of(kafka: Kafka, protocol: str, mechanism: str) -> dict[str, str]:
    if protocol == "SSL":
        carol = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(kafka.authority.client("carol").bundle)}
        return kafka.properties(protocol) | carol
    return kafka.properties(protocol, "admin" if mechanism else None, mechanism)


@pytest.mark.parametrize(("protocol", "mechanism"), CASES)
def test_every_kind_of_command_works(kafka: Kafka, kgctl: Run, protocol: str, mechanism: str) -> None:
    security = properties_of(kafka, protocol, mechanism)
    name = f"t-{protocol}-{mechanism}"

    def succeed(*arguments: object, text: str | None = None) -> str:
        done = kgctl(protocol, security, *arguments, text=text)
        assert done.exit_code == 0, f"{arguments}: {done.output}"
        return str(done.stdout)

    succeed("topics", "create", name, "--partitions", 2)
    succeed("produce", name, text="one\ntwo\n")
    assert sorted(succeed("consume", name, "--group", name, "--from-beginning", "--until-end").split()) == [
        "one",
        "two",
    ]
    described = json.loads(succeed("groups", "describe", name, "-o", "json"))["rows"]
    assert sum(row["current_offset"] for row in described if row["current_offset"] is not None) == 2
    assert name in succeed("ui", name, "--once")
    steps = json.loads(succeed("context", "test", "-o", "json"))["rows"]
    assert {row["status"] for row in steps} <= {"ok", "skipped"}


def quick(protocol: str, mechanism: str) -> Any:
    """A case of a test that starts Spark: only one of them is not a long run."""
    is_quick = (protocol, mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    return pytest.param(protocol, mechanism, marks=[] if is_quick else pytest.mark.soak)


@pytest.mark.spark
@pytest.mark.parametrize(("protocol", "mechanism"), [quick(*case) for case in CASES])
def test_spark_reads_commits(kafka: Kafka, kgctl: Run, tmp_path: Path, protocol: str, mechanism: str) -> None:
    pytest.importorskip("pyspark")
    pyarrow = pytest.importorskip("pyarrow.parquet")
    name, out = f"s-{protocol}-{mechanism}", tmp_path / "out"
    security = properties_of(kafka, protocol, mechanism)
    assert kgctl("PLAINTEXT", {}, "topics", "create", name).exit_code == 0
    assert kgctl("PLAINTEXT", {}, "produce", name, text="one\n").exit_code == 0
    moved = ["groups", "reset-offsets", name, "--topic", name, "--to-latest", "--create", "--execute"]
    assert kgctl("PLAINTEXT", {}, *moved).exit_code == 0
    command = [sys.executable, "-m", "kgctl", "pipeline", "run", "decode", "--once", "--quick", "--out", str(out)]
    command += ["--bootstrap", kafka.addresses[protocol], *map(str, command_config(tmp_path, security))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    rows = [
        row for file in TableFolder(out / "commits").files() for row in pyarrow.ParquetFile(file).read().to_pylist()
    ]
    assert 1 in [row["committed"] for row in rows if row["group"] == name]


WRONG_PASSWORD = {"PLAIN": "Invalid username or password", "OAUTHBEARER": "invalid_token"} | dict.fromkeys(
    MECHANISMS[1:3], "invalid credentials"
)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wrong_credentials_are_refused(kafka: Kafka, kgctl: Run, mechanism: str) -> None:
    wrong = kafka.properties("SASL_SSL", "alice", mechanism, password="wrong")
    if mechanism == "OAUTHBEARER":
        wrong["sasl.oauthbearer.token"] = unsecured_token("alice", lifetime_s=-60)
        del wrong["sasl.jaas.config"]
    for command in (["topics", "list"], ["consume", "t"], ["ui", "--once"]):
        done = kgctl("SASL_SSL", wrong, *command)
        assert (done.exit_code, done.stdout) == (UNREACHABLE, ""), command
        assert kafka.addresses["SASL_SSL"] in done.stderr
        assert WRONG_PASSWORD[mechanism] in done.stderr
        assert len(done.stderr.splitlines()) == 1


# What is wrong: the listener, the properties, and a part of the message.
MISTAKES = {
    "expired": (EXPIRED, "SSL", "the certificate of CN=old,O=kgctl tests expired on "),
    "another name": (ELSEWHERE, "SSL", "is not for '127.0.0.1': it names kafka.example"),
    "TLS to plaintext": ("PLAINTEXT", "SSL", "does not speak TLS"),
    "plaintext to TLS": ("SSL", "PLAINTEXT", "requires TLS"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_error(kafka: Kafka, kgctl: Run, mistake: str) -> None:
    listener, protocol, says = MISTAKES[mistake]
    done = kgctl(listener, kafka.properties(protocol, "admin"), "topics", "list")
    assert (done.exit_code, done.stdout) == (UNREACHABLE, "")
    assert done.stderr.startswith(f"Error: {kafka.addresses[listener]}: ")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_authority_that_is_not_trusted_is_named(kafka: Kafka, kgctl: Run, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other", "another CA").ca_file
    done = kgctl("SSL", kafka.properties("SSL") | {"ssl.truststore.location": str(other)}, "topics", "list")
    assert done.exit_code == UNREACHABLE
    assert "is issued by CN=kgctl test CA,O=kgctl tests, which is not trusted" in done.stderr


def test_a_permission_that_lacks_is_named(kafka: Kafka, kgctl: Run) -> None:
    security = kafka.properties("SASL_SSL", "alice")
    for command, lacks in {
        ("groups", "describe", "orders"): "DESCRIBE on group orders",
        ("topics", "describe", "orders"): "DESCRIBE on topic orders",
        ("topics", "create", "orders"): "CREATE on topic orders",
        ("consume", "orders"): "DESCRIBE on topic orders",
    }.items():
        done = kgctl("SASL_SSL", security, *command)
        assert done.exit_code == UNREACHABLE, command
        assert f"not authorised for {lacks}" in done.stderr


def test_a_user_that_is_deleted_loses_its_session(kafka: Kafka, kgctl: Run, tmp_path: Path) -> None:
    def succeed(*arguments: object, text: str | None = None) -> None:
        done = kgctl("PLAINTEXT", {}, *arguments, text=text)
        assert done.exit_code == 0, done.output

    succeed("topics", "create", "revoked")
    succeed("users", "set-password", "dave", text="dave-secret")
    rights = ["--consumer", "--topic", "revoked", "--group", "revoked", "--execute"]
    succeed("acls", "add", "--allow-principal", "User:dave", *rights)
    security = kafka.properties("SASL_SSL", "dave", password="dave-secret")
    with consuming(kafka, "revoked", command_config(tmp_path, security)) as consumer:
        succeed("produce", "revoked", text="one")
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == "one\n"
        succeed("users", "delete", "dave", "--execute")
        stderr = consumer.communicate(timeout=30)[1]
    assert consumer.returncode == UNREACHABLE
    assert "the broker does not accept user 'dave' with SCRAM-SHA-512" in stderr
    assert "Traceback" not in stderr


def test_a_token_that_expires_ends_the_session(kafka: Kafka, kgctl: Run, tmp_path: Path) -> None:
    assert kgctl("PLAINTEXT", {}, "topics", "create", "expired").exit_code == 0
    security = kafka.properties("SASL_SSL") | {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token": unsecured_token("admin", lifetime_s=8),
    }
    with consuming(kafka, "expired", command_config(tmp_path, security)) as consumer:
        stderr = consumer.communicate(timeout=30)[1]
    assert consumer.returncode == UNREACHABLE
    assert re.search("invalid_token|expired", stderr.splitlines()[-1])
    assert "Traceback" not in stderr


@contextlib.contextmanager
def consuming(kafka: Kafka, topic: str, config: list[object]) -> Iterator[subprocess.Popen[str]]:
    """`kgctl consume` of a group, as a process."""
    command = [sys.executable, "-m", "kgctl", "consume", topic, "--group", topic, "--from-beginning"]
    command += ["--bootstrap", kafka.addresses["SASL_SSL"], *map(str, config)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True) as child:
        try:
            yield child
        finally:
            child.kill()
