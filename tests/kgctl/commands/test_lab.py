"""`kgctl lab designs` compares the designs of rebalancing."""

from __future__ import annotations

import json

import pytest

from tests.harness.commandline import Kgctl

SMALL = ("--members", "4", "--partitions", "8", "--failures", "2")


def test_the_table_has_a_row_for_each_design_and_fits_eighty_columns() -> None:
    lines = Kgctl()("lab", "designs", *SMALL).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["DESIGN", "zookeeper", "server-side", "two-phase", "cooperative"]
    assert max(map(len, lines)) <= 80


def test_the_same_seeds_give_the_same_json() -> None:
    arguments = ("lab", "designs", *SMALL, "--seeds", "1-2", "-o", "json")
    first = Kgctl()(*arguments).stdout
    assert Kgctl()(*arguments).stdout == first
    rows = json.loads(first)["rows"]
    assert [row["seeds"] for row in rows] == [2, 2, 2, 2]
    assert [row["double_owner_s"] for row in rows[1:]] == [0, 0, 0]


def test_only_the_named_designs_are_played() -> None:
    result = Kgctl()("lab", "designs", *SMALL, "--design", "zookeeper", "-o", "name")
    assert result.stdout.split() == ["zookeeper"]


@pytest.mark.parametrize("seeds", ["x", "3-1", "1-99999", ""])
def test_seeds_that_are_no_range_are_refused(seeds: str) -> None:
    result = Kgctl()("lab", "designs", "--seeds", seeds)
    assert result.exit_code == 2
    assert "is not a seed or a range such as 1-20" in " ".join(result.stderr.split())


def test_an_unknown_design_is_refused() -> None:
    assert Kgctl()("lab", "designs", "--design", "raft").exit_code == 2
