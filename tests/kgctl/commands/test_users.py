"""`kgctl users` on a broker with a SASL listener."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.security.sasl import scram
from broker.security.secret import Secret
from tests.harness import sasl_conversations as sasl
from tests.harness.commandline import Kgctl
from tests.harness.running import RunningBroker
from tests.harness.terminal import terminal

SHA_512, SHA_256 = "SCRAM-SHA-512", "SCRAM-SHA-256"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    options = {"listeners": listeners, **sasl.options_of("sasl_plaintext")}
    with RunningBroker(tmp_path_factory.mktemp("data"), **options) as running:
        yield running


@pytest.fixture
def kgctl(running: RunningBroker) -> Iterator[Kgctl]:
    kgctl = Kgctl("{}:{}".format(*running.addresses["PLAINTEXT"]))
    yield kgctl
    for user in ("alice", "bob"):
        kgctl("users", "delete", user, "--execute")


def is_accepted(running: RunningBroker, user: str, password: str, mechanism: str = SHA_512) -> bool:
    with running.client("SASL_PLAINTEXT") as client:
        sasl.handshake(mechanism)(client)
        found = sasl.through(lambda: scram.client(mechanism, user, Secret(password), nonce="n"))(client)
    return found == "complete, 0 ms"


def row(user: str, mechanism: str | None, iterations: int | None = 4096, **more: object) -> dict[str, object]:
    return {"user": user, "mechanism": mechanism, "iterations": iterations, **more, "error": None}


def test_a_user_is_created_listed_and_deleted(kgctl: Kgctl, running: RunningBroker) -> None:
    done = kgctl("users", "set-password", "alice", text="wonder\n")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "USER            MECHANISM     ITERATIONS STATUS",
        "alice           SCRAM-SHA-512 4096       done",
    ]
    assert is_accepted(running, "alice", "wonder")
    assert kgctl.rows("users", "list") == [row("alice", SHA_512)]
    planned = kgctl("users", "delete", "alice")
    assert planned.exit_code == 0
    assert "Dry run" in planned.stderr
    assert is_accepted(running, "alice", "wonder")
    assert kgctl.rows("users", "delete", "alice", "--execute") == [row("alice", SHA_512, status="done")]
    assert not is_accepted(running, "alice", "wonder")
    assert kgctl.rows("users", "list") == []


def test_a_password_file_and_both_mechanisms(kgctl: Kgctl, running: RunningBroker, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("ünique, secret\r\nsecond line\n")
    both = ("--mechanism", SHA_256, "--mechanism", SHA_512)
    arguments = ("users", "set-password", "alice", *both, "--iterations", 8192, "--password-file", file)
    assert kgctl.rows(*arguments) == [
        row("alice", SHA_256, 8192, status="done"),
        row("alice", SHA_512, 8192, status="done"),
    ]
    for mechanism in (SHA_256, SHA_512):
        assert is_accepted(running, "alice", "ünique, secret", mechanism)
    assert kgctl("users", "delete", "alice", "--mechanism", SHA_256, "--execute").exit_code == 0
    assert kgctl.rows("users", "list", "alice") == [row("alice", SHA_512, 8192)]


def test_a_user_that_does_not_exist_is_not_found(kgctl: Kgctl) -> None:
    kgctl("users", "set-password", "alice", text="wonder")
    for arguments in (("list", "nobody"), ("delete", "nobody"), ("delete", "nobody", "--execute")):
        done = kgctl("users", *arguments)
        assert done.exit_code == 5
        assert "user 'nobody': there is no such SCRAM user" in done.stderr
    assert kgctl("users", "list", "alice", "nobody").exit_code == 4
    other = kgctl("users", "delete", "alice", "--mechanism", SHA_256)
    assert other.exit_code == 5
    assert "user 'alice' has no SCRAM-SHA-256 credential" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        ((), "", "the first line of stdin is empty"),
        ((), "\nsecond", "the first line of stdin is empty"),
        pytest.param((), "x" * 4097, "the first line of stdin has more than 4096 characters", id="too long"),
        (("--password-file", "/absent"), "", "cannot read /absent: No such file"),
        (("--mechanism", "PLAIN"), "x", "'PLAIN' is not one of SCRAM-SHA-256, SCRAM-SHA-512"),
        (("--iterations", "4095"), "x", "4095 is not in the range"),
        (("--iterations", "16385"), "x", "16385 is not in the range"),
    ],
)
def test_a_password_that_cannot_be_set_is_a_usage_error(
    kgctl: Kgctl, arguments: tuple[str, ...], text: str, message: str
) -> None:
    done = kgctl("users", "set-password", "alice", *arguments, text=text)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert kgctl.rows("users", "list") == []


def test_an_argument_is_never_a_password(kgctl: Kgctl) -> None:
    assert kgctl("users", "set-password", "alice", "secret", text="x").exit_code == 2
    assert kgctl("users", "set-password", "alice", "--password", "secret", text="x").exit_code == 2


def test_a_password_is_typed_twice_and_not_shown(kgctl: Kgctl, running: RunningBroker) -> None:
    assert kgctl.bootstrap
    command = [sys.executable, "-m", "kgctl", "users", "set-password", "alice", "--bootstrap", kgctl.bootstrap]
    for again, end in (("wonder", "exit=0"), ("other", "exit=2")):
        with terminal(command) as screen:
            screen.wait_for(lambda text: "Password of alice:" in text, "the prompt")
            screen.press("wonder", "Enter")
            screen.wait_for(lambda text: "Again:" in text, "the second prompt")
            screen.press(again, "Enter")
            assert "wonder" not in screen.wait_for(lambda text, end=end: end in text, "the end")  # type: ignore[misc]
    assert is_accepted(running, "alice", "wonder")


@pytest.mark.parametrize(("mode", "warns"), [(0o644, True), (0o600, False)])
def test_a_password_file_that_others_may_read_is_a_warning(
    kgctl: Kgctl, tmp_path: Path, mode: int, warns: bool
) -> None:
    file = tmp_path / "password"
    file.write_text("wonder\n")
    file.chmod(mode)
    done = kgctl("users", "set-password", "alice", "--password-file", file)
    assert done.exit_code == 0
    assert done.stderr == (f"Warning: other users may read {file}: run `chmod 600` on it.\n" if warns else "")


def test_the_deletion_of_the_own_account_is_a_warning(kgctl: Kgctl, running: RunningBroker, tmp_path: Path) -> None:
    assert kgctl("users", "set-password", "alice", text="wonder\n").exit_code == 0
    file = tmp_path / "client.properties"
    address = "{}:{}".format(*running.addresses["SASL_PLAINTEXT"])
    file.write_text(
        f"bootstrap.servers={address}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism={SHA_512}\n"
        "sasl.username=alice\nsasl.password=wonder\n"
    )
    file.chmod(0o600)
    own = Kgctl()("users", "delete", "alice", "--command-config", file)
    assert own.stderr.startswith("Warning: this command connects as 'alice', who then cannot connect again.\n")
    other = Kgctl()("users", "delete", "bob", "--command-config", file)
    assert "connects as" not in other.stderr
