"""A read-only context refuses every change, and `confirm` asks for names: for all verbs, before any connection."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any
from uuid import uuid4

import pytest

import kgctl.app
from kgctl.app import COMMANDS, load
from kgctl.client.admin.admin import Admin
from kgctl.client.net.errors import KgctlError
from kgctl.commands.shared.effects import Effect, effect_of
from kgctl.commands.shared.loading import verbs_of
from kgctl.contexts.connecting import connection_to
from kgctl.contexts.target import Given, choose
from kgctl.model.changes import TopicChange
from tests.harness.clusters import Cluster
from tests.harness.commandline import Kgctl
from tests.kgctl.contexts.folders import Home

# For each verb that can change a cluster: arguments that make it one. A new verb needs a line here.
CHANGES = {
    "groups reset-offsets": ["g", "--all-topics", "--to-latest", "--execute"],
    "groups delete": ["g", "--execute"],
    "groups remove-members": ["g", "--all", "--execute"],
    "groups rebalance": ["g", "--execute"],
    "groups delete-offsets": ["g", "--all-topics", "--execute"],
    "topics create": ["g"],
    "topics delete": ["g", "--execute"],
    "topics alter": ["g", "--partitions", "3", "--execute"],
    "topics delete-records": ["g", "--before", "now", "--execute"],
    "configs set": ["topic", "g", "a=b", "--execute"],
    "configs unset": ["topic", "g", "a", "--execute"],
    "cluster set-feature": ["g=1", "--execute"],
    "quotas set": ["--user", "g", "a=1", "--execute"],
    "quotas remove": ["--user", "g", "--execute"],
    "transactions abort": ["g", "--execute"],
    "acls add": ["--topic", "g", "--allow-principal", "User:a", "--execute"],
    "acls remove": ["--topic", "g", "--allow-principal", "User:a", "--execute"],
    "users set-password": ["g"],
    "users delete": ["g", "--execute"],
    "produce": ["g"],
    "consume": ["t", "--group", "g"],
    "bench produce": ["--topic", "g"],
    "bench members": ["--topic", "g"],
}


@cache
def commands() -> dict[str, Any]:
    """Each verb."""
    loaded = {name: load(name) for name in COMMANDS}
    return {
        f"{name} {verb}".strip(): below
        for name, command in loaded.items()
        for verb, below in (verbs_of(command) or {"": command}).items()
    }


@cache
def effects() -> dict[str, Effect]:
    return {verb: effect_of(command) for verb, command in commands().items()}


@pytest.fixture
def silent_port() -> Iterator[str]:
    """A port that nobody may connect to; the test fails if anyone does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_every_verb_declares_what_it_does() -> None:
    assert {verb for verb, effect in effects().items() if effect.is_change} == set(CHANGES)


def test_every_change_is_kept_in_the_journal() -> None:
    # Ordinary clients write records and commit the offsets of what they have read.
    clients = {"produce", "consume", "bench produce", "bench members"}
    kept = {verb for verb, command in commands().items() if any(one.name == "no_journal" for one in command.params)}
    assert kept >= CHANGES.keys() - clients | {"apply", "undo", "compat", "groups restore", "groups clone"}


@pytest.mark.parametrize("verb", CHANGES)
def test_a_read_only_context_refuses_every_change_before_it_connects(home: Home, silent_port: str, verb: str) -> None:
    home.write(
        f'[contexts.prod]\nbootstrap.servers = "{silent_port}"\nread-only = true\nsasl.password = {{ env = "NONE" }}\n'
        "confirm = true\n"
    )
    done = home.kgctl(*verb.split(), *CHANGES[verb], "--context", "prod", text="x\n")
    assert done.exit_code == 6
    assert f"is refused: context 'prod' is read-only ({home.file}, line 3)" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("verb", CHANGES)
def test_without_a_terminal_a_confirming_context_wants_the_name_as_an_option(
    home: Home, silent_port: str, verb: str
) -> None:
    home.write(f'[contexts.prod]\nbootstrap.servers = "{silent_port}"\nconfirm = true\n')
    for given in ([], ["--yes", "other"]):
        done = home.kgctl(*verb.split(), *CHANGES[verb], *given, "--context", "prod", text="g\n")
        assert done.exit_code == 6
        # What has no name, such as ACLs, is confirmed with the name of the context.
        name = "prod" if not effects()[verb].names else "g=1" if verb == "cluster set-feature" else "g"
        assert done.stderr == f"Error: context 'prod' asks for confirmation: add --yes {name}\n"


def test_the_right_name_confirms(home: Home, silent_port: str) -> None:
    home.write('[contexts.prod]\nbootstrap.servers = "127.0.0.1:1"\nconfirm = true\n')
    done = home.kgctl("groups", "delete", "a", "b", "--execute", "--yes", "a", "--yes", "b", "--context", "prod")
    assert done.exit_code == 7


def test_plans_and_reads_need_no_confirmation(home: Home) -> None:
    home.write('[contexts.prod]\nbootstrap.servers = "127.0.0.1:1"\nconfirm = true\nread-only = true\n')
    for arguments in (
        ["groups", "delete", "g"],
        ["groups", "list"],
        ["consume", "t", "--until-end"],
        ["bench", "consume", "--topic", "t"],
        ["topics", "list"],
    ):
        assert home.kgctl(*arguments, "--context", "prod").exit_code == 7


def test_a_measurement_that_makes_a_topic_asks_first(home: Home, silent_port: str) -> None:
    home.write(f'[contexts.prod]\nbootstrap.servers = "{silent_port}"\nread-only = true\n')
    done = home.kgctl("bench", "consume", "--context", "prod")
    assert (done.exit_code, done.stdout) == (6, "")
    assert "`kgctl bench consume` without --topic is refused: context 'prod' is read-only" in done.stderr


@pytest.mark.parametrize(("typed", "code"), [("orders", 7), ("order", 6), ("", 6)])
def test_on_a_terminal_the_name_is_asked_for(home: Home, typed: str, code: int) -> None:
    home.write('[contexts.prod]\nbootstrap.servers = "127.0.0.1:1"\nconfirm = true\n')
    ours, theirs = pty.openpty()
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "kgctl", "groups", "delete", "orders", "--execute", "--context", "prod"],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env=os.environ | home.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(kgctl.app.__file__))},
        )
        os.write(ours, typed.encode() + b"\n")
        assert child.wait(30) == code
        shown = os.read(ours, 4096).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert "Context 'prod' asks for confirmation." in shown
    assert "Type orders to confirm: " in shown


@pytest.mark.parametrize(
    "arguments", [["--delete", "--group", "g"], ["--delete-offsets", "--group", "g", "--topic", "t:0"]]
)
def test_kafkas_tools_ask_before_they_change_something(home: Home, arguments: list[str]) -> None:
    home.write('[contexts.prod]\nbootstrap.servers = "127.0.0.1:1"\nread-only = true\n')
    done = home.kgctl("compat", "--context", "prod", "kafka-consumer-groups", *arguments)
    assert (done.exit_code, done.stdout) == (6, "")
    assert "`kafka-consumer-groups` is refused: context 'prod' is read-only" in done.stderr
    home.write('[contexts.prod]\nbootstrap.servers = "127.0.0.1:1"\nconfirm = true\n')
    done = home.kgctl("compat", "--context", "prod", "kafka-consumer-groups", *arguments)
    assert "context 'prod' asks for confirmation: add --yes g" in done.stderr
    done = home.kgctl("compat", "--context", "prod", "--yes", "g", "kafka-consumer-groups", *arguments)
    assert done.exit_code == 7


def test_a_verb_without_a_declaration_cannot_be_loaded() -> None:
    import typer

    from kgctl.commands.shared.effects import guard

    app = typer.Typer()
    app.command("wipe")(lambda: None)
    with pytest.raises(AssertionError, match="wipe declares no effect"):
        guard(typer.main.get_command(app))


def test_a_client_of_a_read_only_context_sends_no_change(home: Home, our_cluster: Cluster) -> None:
    """Whatever asks for it: a dialog, a pipeline, or a verb that declares too little."""
    kgctl = Kgctl(our_cluster.bootstrap_servers)
    topic = f"kept-{uuid4().hex}"
    assert kgctl("topics", "create", topic).exit_code == 0
    home.write(f'[contexts.prod]\nbootstrap.servers = "{our_cluster.bootstrap_servers}"\nread-only = true\n')
    with Admin(connection_to(choose(Given(context="prod"), home.environ))) as admin:
        plan = admin.plan_topic_deletion([topic])
        for rows in (refused(lambda: admin.delete_topics(plan)), refused(lambda: admin.create_topics([f"{topic}-2"]))):
            assert rows == "READ_ONLY"
        assert topic in [row.topic for row in admin.list_topics()]
        admin.list_groups()
        admin.describe_topics([topic])


def refused(change: Callable[[], Sequence[TopicChange]]) -> str | None:
    """The name of the error, raised or in the row."""
    try:
        (row,) = change()
    except KgctlError as error:
        return error.name
    return row.error.name if row.error else None
