"""`kgctl compat kafka-acls`: what it changes, and when it asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from typer.testing import Result

from tests.harness.commandline import Kgctl
from tests.harness.running import RunningBroker

TOPIC = "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
READ = "(principal=User:a, host=*, operation=READ, permissionType=ALLOW)"
WRITE = "(principal=User:a, host=*, operation=WRITE, permissionType=ALLOW)"
BOTH = ("--topic", "t", "--allow-principal", "User:a", "--operation", "read", "--operation", "Write")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    options = {"authorizer_class_name": "StandardAuthorizer", "super_users": "User:ANONYMOUS"}
    with RunningBroker(tmp_path_factory.mktemp("acls") / "data", **options) as running:
        yield "{}:{}".format(*running.address)


@pytest.fixture
def tool(address: str) -> Iterator[Tool]:
    tool = Tool(address)
    tool("--add", *BOTH)
    yield tool
    tool("--remove", "--topic", "t", "--force")
    assert tool("--list").stdout == ""


class Tool:
    def __init__(self, address: str) -> None:
        self.address = address

    def __call__(self, *words: str, text: str | None = None, dialect: str = "4.1", code: int = 0) -> Result:
        server = ("--bootstrap-server", self.address)
        done = Kgctl()("compat", "--dialect", dialect, "kafka-acls", *server, *words, text=text)
        assert done.exit_code == code, done.output
        return done


def test_acls_are_added_listed_and_removed(tool: Tool) -> None:
    assert tool("--add", *BOTH).stdout == f"Adding ACLs for resource `{TOPIC}`: \n \t{READ}\n\t{WRITE}\n\n"
    assert tool("--list").stdout == f"Current ACLs for resource `{TOPIC}`:\n\t{READ}\n\t{WRITE}\n\n"
    assert tool("--remove", *BOTH, "--force").stdout == ""
    assert tool("--list").stdout == ""


@pytest.mark.parametrize(("answer", "is_removed"), [("y\n", True), ("Y\r\n", True), ("n\n", False), ("yes\n", False)])
def test_a_removal_without_force_asks(tool: Tool, answer: str, is_removed: bool) -> None:
    done = tool("--remove", *BOTH, text=answer, dialect="3.9")
    question = (
        f"Are you sure you want to remove ACLs: \n \t{READ}\n\t{WRITE} \n from resource filter `{TOPIC}`? (y/n)\n"
    )
    assert done.stdout == question
    assert (tool("--list").stdout == "") == is_removed


def test_a_removal_without_an_answer_fails_and_removes_nothing(tool: Tool) -> None:
    done = tool("--remove", "--topic", "t", text="", code=1)
    assert done.stdout.startswith(
        f"Are you sure you want to delete all ACLs for resource filter `{TOPIC}`? (y/n)\nError"
    )
    assert READ in tool("--list").stdout


@pytest.mark.parametrize(
    "words",
    [
        ("--add", "--topic", "t", "--allow-principal", "User:a", "--operation", "Dance"),
        ("--add", "--topic", "t"),
        ("--add", "--allow-principal", "User:a"),
        ("--remove", "--topic", "t", "--principal", "User:a"),
        ("--list", "--topic", "t", "--allow-host", "h"),
    ],
)
def test_arguments_that_do_not_fit_together_change_nothing(tool: Tool, words: tuple[str, ...]) -> None:
    assert tool(*words, code=1).stdout == ""
