"""The documents say what the code does."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kgctl.app import COMMANDS, app, load
from tests.harness import ROOT
from tools.generate_docs import help_pages, pages, surplus_help_pages

PROSE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", [path.name for path, _ in pages()])
def test_a_generated_page_is_up_to_date(page: str) -> None:
    path, text = next(found for found in pages() if found[0].name == page)
    assert path.read_text() == text, "run: make docs"


def test_the_help_pages_are_up_to_date() -> None:
    assert [path.name for path, text in help_pages() if not path.exists() or path.read_text() != text] == [], (
        "run: make docs"
    )
    assert surplus_help_pages() == []


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_links_lead_to_files(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


def commands_of_the_pages() -> list[str]:
    pages = [
        ROOT / "README.md",
        ROOT / "docs" / "connect.md",
        ROOT / "docs" / "contexts.md",
        ROOT / "docs" / "transactions.md",
    ]
    text = "".join(page.read_text() for page in pages).replace("\\\n", "")
    blocks = re.findall(r"(?ms)^```\w*\n(.*?)^```", text)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line[line.index("kgctl ") :] for line in lines if re.match(r"(kgctl |echo .*\| kgctl )", line)]


@pytest.mark.parametrize("line", commands_of_the_pages())
def test_pages_name_commands_and_options_that_exist(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    verbs = words[: 2 if hasattr(load(words[0]), "commands") else 1]
    shown = CliRunner().invoke(app, [*verbs, "--help"])
    assert words[0] in COMMANDS
    assert shown.exit_code == 0, shown.output
    offered = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", shown.stdout))
    assert {word.split("=")[0] for word in words if word.startswith("-")} <= offered
