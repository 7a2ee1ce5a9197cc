"""Secrets: where they may come from, when they are read, and that nothing shows them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from broker.security.secret import Secret
from kgctl.contexts.connecting import connection_to, resolved
from kgctl.contexts.handover import portable, revealed, write_private
from kgctl.contexts.names import BadContext
from kgctl.contexts.target import Given, choose
from tests.kgctl.contexts.folders import Home

SASL = '[contexts.prod]\nbootstrap.servers = "a:1"\nsecurity.protocol = "SASL_PLAINTEXT"\nsasl.mechanism = "PLAIN"\n'
ALICE = SASL + 'sasl.username = "alice"\n'


def password(home: Home, **environ: str) -> Secret:
    found = resolved(choose(Given(context="prod"), {**home.environ, **environ}), {**home.environ, **environ})
    value = found["sasl.password"]
    assert isinstance(value, Secret)
    return value


def test_a_secret_comes_from_a_variable(home: Home) -> None:
    home.write(ALICE + 'sasl.password = { env = "P" }\n')
    assert password(home, P="hush").reveal() == "hush"
    with pytest.raises(BadContext, match=r"line 6: sasl.password: the environment variable P is not set"):
        password(home)


def test_a_secret_comes_from_a_file_beside_the_context_file(home: Home) -> None:
    home.write(ALICE + 'sasl.password = { file = "secret.txt" }\n')
    with pytest.raises(BadContext, match=r"cannot read the secret from .*secret.txt: No such file"):
        password(home)
    (home.file.parent / "secret.txt").write_bytes(b"hu sh \r\n")
    assert password(home).reveal() == "hu sh "


def test_a_secret_comes_from_a_command_which_reads_no_stdin_and_needs_no_shell(home: Home) -> None:
    program = "import sys; print(sys.argv[1] + repr(sys.stdin.read()))"
    home.write(ALICE + f"""sasl.password = {{ command = '''{sys.executable} -c "{program}" "$HOME;"''' }}\n""")
    assert password(home).reveal() == "$HOME;''"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("false", "the command 'false' failed with exit code 1"),
        ("true", "the output of the command 'true' is empty"),
        ("no-such-program-here x", "cannot run the command 'no-such-program-here': No such file"),
    ],
)
def test_a_command_that_gives_no_secret_is_an_error(home: Home, command: str, says: str) -> None:
    home.write(ALICE + f'sasl.password = {{ command = "{command}" }}\n')
    with pytest.raises(BadContext, match=says):
        password(home)


def test_a_secret_in_the_file_needs_a_private_file(home: Home) -> None:
    home.write(ALICE + 'sasl.password = "hush"\n')
    assert password(home).reveal() == "hush"
    home.file.chmod(0o640)
    with pytest.raises(
        BadContext, match=r"line 6: sasl.password is a secret in a file that others can read: chmod 600 "
    ):
        password(home)


def test_listing_and_showing_resolve_no_secret(home: Home) -> None:
    home.write(ALICE + 'sasl.password = { command = "touch resolved" }\n')
    for command in (["list"], ["show", "prod"], ["show", "--explain", "--context", "prod"], ["export", "prod"]):
        assert home.kgctl("context", *command).exit_code == 0
    assert not (home.file.parent / "resolved").exists()


@pytest.mark.parametrize("output", ["table", "json", "yaml", "csv"])
def test_no_output_shows_a_secret(home: Home, output: str) -> None:
    jaas = 'org.x.PlainLoginModule required username=\\"a\\" password=\\"hush\\";'
    home.write(ALICE + f'sasl.password = "hush"\nsasl.jaas.config = "{jaas}"\nssl.keystore.key = "hush"\n')
    home.use("prod")
    for command in (["list"], ["show", "--explain"], ["show", "prod"], ["export"]):
        done = home.kgctl("context", *command, "-o", output)
        assert done.exit_code == 0, done.output
        assert "hush" not in done.output
    assert "***" in home.kgctl("context", "show").output


def test_a_secret_is_refused_as_an_argument_and_not_repeated(home: Home) -> None:
    for arguments in (["--set", "sasl.password=hush"], ["--secret", "sasl.password=hush"], ["--secret", "hush"]):
        done = home.kgctl("context", "add", "prod", *arguments)
        assert done.exit_code == 2
        assert "hush" not in done.output


def test_settings_of_a_connection_show_no_secret_and_go_to_another_process(home: Home, tmp_path: Path) -> None:
    home.write(ALICE + 'sasl.password = "hush"\n')
    target = choose(Given(context="prod"), home.environ)
    settings = connection_to(target, environ=home.environ)
    assert "hush" not in repr(settings)
    taken = portable(resolved(target), "spark", 5.0)
    assert "hush" not in repr(taken)
    again = pickle.loads(pickle.dumps(taken))
    assert again == taken
    assert again.security == settings.security
    write_private(tmp_path / "given", dict(taken.properties))
    assert (tmp_path / "given").stat().st_mode & 0o777 == 0o600
    file = choose(Given(command_config=str(tmp_path / "given")), home.environ)
    assert revealed(resolved(file)) == dict(taken.properties)


def test_paths_in_a_context_start_at_its_file(home: Home) -> None:
    home.write('[contexts.prod]\nssl.truststore.location = "ca.pem"\nssl.keystore.location = "/abs.p12"\n')
    found = resolved(choose(Given(context="prod"), home.environ))
    assert found["ssl.truststore.location"] == str(home.file.parent / "ca.pem")
    assert found["ssl.keystore.location"] == "/abs.p12"


def test_a_keyring_that_is_not_installed_is_one_sentence(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write(ALICE + 'sasl.password = { keyring = "kafka/alice" }\n')
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(BadContext, match=r"pip install 'kgctl\[keyring\]'"):
        password(home)


def test_a_secret_comes_from_the_system_keyring(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = pytest.importorskip("keyring")
    stored = {("kafka/prod", "alice"): "hush"}

    class Memory(keyring.backend.KeyringBackend):
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return stored.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            raise NotImplementedError

        def delete_password(self, service: str, username: str) -> None:
            raise NotImplementedError

    before = keyring.get_keyring()
    keyring.set_keyring(Memory())
    try:
        home.write(ALICE + 'sasl.password = { keyring = "kafka/prod/alice" }\n')
        assert password(home).reveal() == "hush"
        stored.clear()
        with pytest.raises(BadContext, match="the system keyring has no password for 'kafka/prod' and user 'alice'"):
            password(home)
    finally:
        keyring.set_keyring(before)


def test_client_id_and_time_limit_come_from_the_context(home: Home) -> None:
    home.write('[contexts.prod]\nbootstrap.servers = "a:1"\nclient.id = "me"\ntimeout = 7\n')
    target = choose(Given(context="prod"), home.environ)
    settings = connection_to(target, environ=home.environ)
    assert (settings.client_id, settings.timeout) == ("me", 7.0)
    assert connection_to(target, timeout=2.0, environ=home.environ).timeout == 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("context", "add", "dev", "--secret", "sasl.password=prompt"), "sasl.password: nothing was typed."),
        (("users", "set-password", "alice"), "the password is empty."),
    ],
)
def test_the_end_of_the_input_at_a_prompt_is_a_usage_error(
    home: Home, arguments: tuple[str, ...], message: str
) -> None:
    master, terminal = os.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "kgctl", *arguments],
        stdin=terminal,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # without /dev/tty, so that the prompt reads stdin
    )
    assert program.stderr is not None
    shown = b""
    while not shown.endswith(b": "):
        shown += program.stderr.read(1) or b": "
    os.write(master, b"\x04")
    _, rest = program.communicate(timeout=30)
    os.close(master)
    os.close(terminal)
    assert program.returncode == 2
    assert rest.decode().rstrip().endswith(message)
