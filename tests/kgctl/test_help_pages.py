"""Help pages come from files, as Typer would write them, and nothing else is loaded for them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.harness.commandline import Kgctl

SHOW_MODULES = (
    "import sys\nfrom kgctl.__main__ import main\ntry: main()\nfinally: sys.stderr.write(' '.join(sys.modules))"
)


def run(*arguments: str, **environment: str) -> tuple[str, set[str]]:
    """What kgctl prints to a pipe, and the modules that it loads beyond those of the interpreter."""
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")} | environment
    done = subprocess.run(
        [sys.executable, "-c", SHOW_MODULES, *arguments], capture_output=True, text=True, env=variables, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["groups", "-h"], ["groups", "list", "--help"]], ids=" ".join)
def test_help_is_the_page_of_the_command_and_loads_no_command_line(arguments: list[str]) -> None:
    for environment in ({}, {"COLUMNS": "200"}, {"COLUMNS": "80"}, {"COLUMNS": "wide"}):
        page, modules = run(*arguments, **environment)
        assert page == Kgctl()(*arguments).stdout
        ours = {name for name in modules if name.split(".")[0] in ("kgctl", "broker", "typer")}
        assert "typing" not in modules
        assert ours == {"broker", "broker.standard_streams", "kgctl", "kgctl.__main__", "kgctl.help", "kgctl.output"}


def test_a_narrow_terminal_gets_a_narrow_page() -> None:
    page, _ = run("groups", "list", "--help", COLUMNS="60")
    assert max(map(len, page.splitlines())) <= 60
    assert "Usage: kgctl groups list" in page


@pytest.mark.parametrize(
    ("arguments", "beginning"),
    [
        (["groups", "list", "--plain", "--help"], "Usage: kgctl groups list"),
        (["groups", "--help", "list"], "Usage: kgctl groups [OPTIONS] COMMAND"),
        (["-o", "json", "groups", "-h"], "Usage: kgctl groups [OPTIONS] COMMAND"),
    ],
)
def test_help_among_other_arguments_is_answered_by_the_command(arguments: list[str], beginning: str) -> None:
    assert run(*arguments)[0].startswith(beginning)


@pytest.mark.parametrize("name", ["../help/kgctl", "nothing", "kgctl.groups", ""])
def test_a_name_that_is_no_command_finds_no_page(name: str) -> None:
    done = subprocess.run([sys.executable, "-m", "kgctl", name, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such command" in done.stderr
