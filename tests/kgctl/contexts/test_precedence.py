"""Which cluster a command works on: options, environment, project file, user file, local broker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kgctl.contexts.names import BadContext
from kgctl.contexts.target import Given, Target, choose, only_cluster
from kgctl.exit_codes import exit_code_of
from tests.kgctl.contexts.folders import Home

CONTEXTS = """
[contexts.prod]
bootstrap.servers = "prod:1"
sasl.username = "alice"
[contexts.dev]
bootstrap.servers = "dev:1"
"""


def address(target: Target) -> str | None:
    return target.text("bootstrap.servers")


def test_the_first_level_that_names_a_cluster_decides(home: Home) -> None:
    home.local_broker({"address": "127.0.0.1:5000", "pid": os.getpid()})
    assert address(choose(Given(), home.environ)) == "127.0.0.1:5000"
    home.write(CONTEXTS)
    assert address(choose(Given(), home.environ)) == "127.0.0.1:5000"
    home.use("dev")
    assert address(choose(Given(), home.environ)) == "dev:1"
    Path(".kgctl.toml").write_text('context = "shop"\n[contexts.shop]\nbootstrap.servers = "project:1"\n')
    assert home.kgctl("context", "trust").exit_code == 0
    assert address(choose(Given(), home.environ)) == "project:1"
    assert address(choose(Given(), {**home.environ, "KGCTL_CONTEXT": "prod"})) == "prod:1"
    assert address(choose(Given(), {**home.environ, "KGCTL_BOOTSTRAP": "env:1"})) == "env:1"
    assert address(choose(Given(bootstrap="option:2"), {**home.environ, "KGCTL_CONTEXT": "prod"})) == "option:2"


def test_credentials_of_a_context_do_not_go_to_an_address_of_another_level(home: Home) -> None:
    home.write(CONTEXTS)
    home.use("prod")
    for options, environ in (
        (Given(bootstrap="elsewhere:1"), {}),
        (Given(bootstrap="elsewhere:1"), {"KGCTL_CONTEXT": "prod"}),
        (Given(), {"KGCTL_BOOTSTRAP": "elsewhere:1"}),
    ):
        target = choose(options, {**home.environ, **environ})
        assert (address(target), target.name, target.text("sasl.username")) == ("elsewhere:1", None, None)


def test_an_address_replaces_that_of_a_context_of_the_same_level(home: Home) -> None:
    home.write(CONTEXTS)
    target = choose(Given(bootstrap="prod-2:1", context="prod"), home.environ)
    assert (address(target), target.name, target.text("sasl.username")) == ("prod-2:1", "prod", "alice")


def test_a_context_without_an_address_is_for_the_local_broker(home: Home) -> None:
    home.write('[contexts.mine]\nclient.id = "me"\n')
    assert address(choose(Given(context="mine"), home.environ)) == "127.0.0.1:9092"


@pytest.mark.parametrize(
    ("given", "environ", "says"),
    [
        (Given(context="nope"), {}, "--context: there is no context 'nope': the contexts are dev, prod"),
        (Given(), {"KGCTL_CONTEXT": "nope"}, "KGCTL_CONTEXT: there is no context 'nope'"),
        (Given(context="prod", command_config="x"), {}, "--context and --command-config exclude each other"),
        (Given(command_config=""), {}, "--command-config is empty: name a client.properties"),
        (
            Given(),
            {"KGCTL_CONTEXT": "a", "KGCTL_COMMAND_CONFIG": "b"},
            "KGCTL_CONTEXT and KGCTL_COMMAND_CONFIG exclude",
        ),
        (Given(command_config="/missing"), {}, "cannot read /missing: No such file"),
    ],
)
def test_a_choice_that_cannot_be_made_is_a_usage_error(
    home: Home, given: Given, environ: dict[str, str], says: str
) -> None:
    home.write(CONTEXTS)
    with pytest.raises(BadContext, match=says) as caught:
        choose(given, {**home.environ, **environ})
    assert exit_code_of(caught.value) == 2


def test_a_current_context_that_is_gone_is_an_error_and_not_the_local_broker(home: Home) -> None:
    home.write(CONTEXTS)
    home.use("gone")
    with pytest.raises(BadContext, match="names a context that does not exist"):
        choose(Given(), home.environ)


def test_without_a_local_broker_the_default_is_kafkas_port(home: Home) -> None:
    assert address(choose(Given(), {**home.environ, "KGCTL_BOOTSTRAP": ""})) == "127.0.0.1:9092"


def test_a_ready_file_of_a_stopped_broker_is_ignored(home: Home) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    home.local_broker({"address": "127.0.0.1:5000", "pid": child.pid})
    assert address(choose(Given(), home.environ)) == "127.0.0.1:9092"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", {"pid": 1}, {"address": "x:y", "pid": os.getpid()}, {"address": 5, "pid": os.getpid()}]
)
def test_a_malformed_ready_file_is_ignored(home: Home, content: object) -> None:
    home.local_broker(content)
    assert address(choose(Given(), home.environ)) == "127.0.0.1:9092"


def test_a_child_works_on_one_cluster_whatever_contexts_there_are(home: Home) -> None:
    home.write(CONTEXTS)
    environ = only_cluster("there:1", {**home.environ, "KGCTL_CONTEXT": "prod", "KGCTL_COMMAND_CONFIG": "x"})
    target = choose(Given(), environ)
    assert (address(target), target.name) == ("there:1", None)


def test_show_explain_says_where_each_value_comes_from(home: Home) -> None:
    home.write(CONTEXTS)
    home.use("prod")
    rows = {str(row["setting"]): row for row in home.rows("context", "show", "--timeout", "7")}
    assert rows["bootstrap.servers"]["source"] == f"{home.file}, line 3"
    assert rows["sasl.username"]["source"] == f"{home.file}, line 4"
    assert (rows["timeout"]["value"], rows["timeout"]["source"]) == ("7", "--timeout")
    assert rows["security.protocol"]["source"] == "default"
    assert (
        home.kgctl("context", "show").stderr == f"Context 'prod', chosen by {home.file.parent / 'current-context'}.\n"
    )
    shown = home.kgctl("context", "show", "--explain", "--bootstrap", "other:1")
    assert shown.stderr.splitlines() == [
        "Chosen by: --bootstrap.",
        f"{home.file.parent / 'current-context'} chooses 'prod', and does not count.",
    ]
    assert "--bootstrap" in shown.stdout


def test_an_error_of_a_property_says_where_the_property_stands(home: Home) -> None:
    Path("client.properties").write_text("security.protocol=SSL\nssl.enabled.protocols=SSLv9\n")
    done = home.kgctl("groups", "list", "--bootstrap", "a:1", "--command-config", "client.properties")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: client.properties, line 2: ssl.enabled.protocols: 'SSLv9' is unknown")
    home.write('[contexts.prod]\nbootstrap.servers = "a:b"\nsecurity.protocol = "SASL_SSL"\n')
    assert f"{home.file}, line 2: 'a:b' is not an address" in home.kgctl("groups", "list", "--context", "prod").stderr


def test_a_misspelt_property_of_a_java_file_is_named(home: Home) -> None:
    Path("client.properties").write_text("securty.protocol=SSL\nbootstrap.servers=127.0.0.1:1\nacks=all\n")
    sentence = "client.properties, line 1: unknown property 'securty.protocol'; did you mean 'security.protocol'?"
    done = home.kgctl("topics", "list", "--command-config", "client.properties")
    assert done.stderr.splitlines()[0] == f"Note: {sentence}"
    assert len(done.stderr.splitlines()) == 2
    imported = home.kgctl("context", "import", "client.properties")
    assert f"Warning: {sentence}" in imported.stderr
    assert "'acks'" not in imported.stderr


def test_a_file_without_an_address_says_which_cluster_is_used(home: Home) -> None:
    file = home.folder / "client.properties"
    file.write_text("client.id=me\n")
    target = choose(Given(command_config=str(file)), home.environ)
    assert target.notes == (f"{file} names no bootstrap.servers, so 127.0.0.1:9092 is used",)
    assert choose(Given(bootstrap="a:1", command_config=str(file)), home.environ).notes == ()
