"""`kgctl cluster set-feature`: plans, levels that become lower, the journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.local import LocalBroker
from tests.harness.commandline import Kgctl

SET = ("cluster", "set-feature")


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as running:
        yield running


@pytest.fixture
def kgctl(broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kgctl:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Kgctl(broker.bootstrap_servers)


def level(kgctl: Kgctl, feature: str = "share.version") -> int:
    rows = {row["feature"]: row["level"] for row in kgctl.rows("cluster", "describe", "--features")}
    found: int = rows[feature]
    return found


def test_a_level_rises_and_the_change_is_taken_back(kgctl: Kgctl) -> None:
    (planned,) = kgctl.rows(*SET, "share.version=1")
    assert (planned["old_level"], planned["new_level"], planned["status"], level(kgctl)) == (0, 1, "planned", 0)
    assert [row["status"] for row in kgctl.rows(*SET, "share.version=1", "--execute")] == ["done"]
    assert level(kgctl) == 1
    assert [row["status"] for row in kgctl.rows(*SET, "share.version=1", "--execute")] == ["same"]
    (entry,) = kgctl.rows("journal")
    assert (entry["verb"], entry["items"], entry["outcome"]) == (
        "cluster set-feature",
        ["feature share.version"],
        "done",
    )
    (undone,) = kgctl.rows("undo", "--execute")
    assert (undone["name"], undone["old_value"], undone["new_value"]) == ("feature share.version", "1", "0")
    assert level(kgctl) == 0
    # The undo of the undo raises it again.
    assert kgctl("undo", kgctl.rows("journal")[-1]["id"], "--execute").exit_code == 0
    assert level(kgctl) == 1
    assert kgctl(*SET, "share.version=0", "--unsafe-downgrade", "--execute").exit_code == 0


def test_a_level_is_lowered_only_with_an_option(kgctl: Kgctl) -> None:
    refused = kgctl(*SET, "transaction.version=1", "--execute")
    assert (refused.exit_code, "add --downgrade to lower it to 1" in refused.stderr) == (6, True)
    assert level(kgctl, "transaction.version") == 2
    done = kgctl(*SET, "transaction.version=1", "--downgrade", "--execute", "--explain")
    assert "kafka-features.sh --bootstrap-server" in done.stderr
    assert "downgrade --feature transaction.version=1" in done.stderr
    assert level(kgctl, "transaction.version") == 1
    # The option is about levels that become lower; others rise.
    assert kgctl(*SET, "transaction.version=2", "--downgrade", "--execute").exit_code == 0
    assert level(kgctl, "transaction.version") == 2


def test_what_the_cluster_refuses_changes_nothing(kgctl: Kgctl) -> None:
    for wanted, reason in (("nope=1", "does not support this feature"), ("share.version=9", "supports versions 0-1")):
        refused = kgctl(*SET, "transaction.version=1", wanted, "--downgrade", "--execute")
        assert (refused.exit_code, reason in refused.stderr) == (1, True), refused.output
    assert level(kgctl, "transaction.version") == 2
    assert kgctl("journal").stdout.count("set-feature") == 0
    for wanted in ("share.version=x", "share.version=-1", "share.version=99999", "share.version"):
        assert kgctl(*SET, wanted).exit_code == 2
