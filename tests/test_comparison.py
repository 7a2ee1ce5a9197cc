"""docs/comparison.md names commands and tests that exist, and has evidence for everything that it says kgctl can do."""

import re
from itertools import pairwise

import pytest

from tests.harness import ROOT

PAGE = (ROOT / "docs" / "comparison.md").read_text()
NO = "\N{EN DASH}"
TOOLS = [
    section
    for section in re.split(r"(?m)^(?=## )", PAGE)
    if "| capability | kgctl |" in section and "| capability | command |" in section
]


def rows(table: str) -> list[list[str]]:
    """The cells of each line below the header."""
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in table.splitlines()[2:]
    ]


def tables(section: str) -> list[str]:
    return re.findall(r"(?m)(?:^\|.*\n)+", section)


@pytest.mark.parametrize("section", TOOLS, ids=lambda section: section.split("\n", 1)[0].strip("# "))
def test_each_capability_of_kgctl_has_evidence_and_no_other_has(section: str) -> None:
    tools, evidence = map(rows, tables(section))
    assert [row[0] for row in tools if row[1] != NO] == [row[0] for row in evidence]
    assert all(re.search("`kgctl ", command) and re.search("`tests/", test) for _, command, test in evidence)
    assert {len(row) for row in tools} == {9}


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(tests/[^`]+)`", PAGE))))
def test_a_named_test_exists(named: str) -> None:
    path, _, name = named.partition("::")
    assert (ROOT / path).is_file()
    assert not name or re.search(rf"(?m)^def {name}\(", (ROOT / path).read_text())


def test_every_capability_is_named_once() -> None:
    names = sorted(row[0] for section in TOOLS for row in rows(tables(section)[0]))
    assert len(TOOLS) == 4
    assert [one for one, other in pairwise(names) if one == other] == []
