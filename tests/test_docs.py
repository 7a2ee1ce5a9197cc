"""The documents say what the code does."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kgctl.app import COMMANDS, app, load
from tests.harness import ROOT
from tools.generate_docs import GENERATED, help_pages, surplus_help_pages

PROSE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_a_generated_page_is_up_to_date(page: Path) -> None:
    assert page.read_text() == GENERATED[page](), "run: make docs"


def test_the_help_pages_are_up_to_date() -> None:
    assert [path.name for path, text in help_pages() if not path.exists() or path.read_text() != text] == [], (
        "run: make docs"
    )
    assert surplus_help_pages() == []


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_links_lead_to_files(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_the_readme_leads_to_every_page(page: Path) -> None:
    known = (ROOT / "README.md").read_text() + (ROOT / "docs" / "pipelines.md").read_text()
    assert f"{page.name})" in known


SHELL = {"|", "||", "&&", ";", ">", ">>", "<", "2>"}


def command_lines(text: str) -> list[str]:
    """The command lines of kgctl in blocks of code, alone or after a pipe, and in the cells of tables."""
    blocks = "\n".join(re.findall(r"(?ms)^```\w*\n(.*?)^```", text)).replace("\\\n", "")
    lines = re.findall(r"(?m)^(?:\$ |echo .*\| )?(kgctl (?!\|).*)", blocks)
    cells = re.findall(r"`(kgctl [^`]+)`", "".join(re.findall(r"(?m)^\|.*\n", text)))
    return lines + [cell.replace("\\|", "|") for cell in cells]


def commands_of_the_pages() -> list[str]:
    found = [line for page in PROSE if page not in GENERATED for line in command_lines(page.read_text())]
    return sorted({shlex.join(shlex.split(line, comments=True)) for line in found})


def words_of(line: str) -> list[str]:
    """The arguments for kgctl: without comments, what the shell does with the output, and the arguments of other tools."""
    words = shlex.split(line, comments=True)[1:]
    end = next((n for n, word in enumerate(words) if word in SHELL or word.startswith("kafka-")), len(words))
    return words[:end]


@pytest.mark.parametrize("line", commands_of_the_pages())
def test_pages_name_commands_and_options_that_exist(line: str) -> None:
    words = words_of(line)
    assert words[0].startswith("-") or words[0] in COMMANDS
    verbs = words[:1] if words[0] in COMMANDS else []
    command = load(words[0]) if verbs else None
    if words[1:2] and words[1] in getattr(command, "commands", {}):
        verbs.append(words[1])
    elif default := getattr(command, "default", None):
        verbs.append(default)
    shown = CliRunner().invoke(app, [*verbs, "--help"])
    assert shown.exit_code == 0, shown.output
    offered = set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", shown.stdout))
    given = {word.split("=")[0] for word in words if re.match("--?[a-zA-Z]", word)}
    assert given <= offered
