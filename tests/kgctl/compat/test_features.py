"""`kgctl compat kafka-features` on our broker; `make test-reference` compares it with the tool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.local import LocalBroker
from tests.harness.commandline import Kgctl
from tests.harness.compat_features import shape

# What the tool of Kafka 4.1.0 prints about our broker, and its exit codes.
RECORDED = [
    (
        "describe",
        0,
        (
            "Feature: share.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 1\tFinalizedVersionLevel: 0\tEpoch: N\n"
            "Feature: transaction.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 2\tFinalizedVersionLevel: 2\tEpoch: N\n"
        ),
    ),
    ("upgrade --feature share.version=1 --dry-run", 0, "share.version can be upgraded to 1.\n"),
    ("upgrade --feature share.version=1", 0, "share.version was upgraded to 1.\n"),
    (
        "upgrade --feature share.version=7 --feature nope=1",
        1,
        "".join(
            f"Could not upgrade {what}. The update failed for all features since the following feature had an error: Invalid"
            " update version 1 for feature nope. Local controller 1 does not support this feature.\n"
            for what in ("nope to 1", "share.version to 7")
        ),
    ),
    ("disable --feature share.version", 0, "share.version was disabled.\n"),
    ("downgrade --feature share.version=0 --unsafe", 0, "share.version was downgraded to 0.\n"),
    (
        "upgrade --metadata 4.1 --dry-run",
        1,
        (
            " `metadata` flag is deprecated and may be removed in a future release.\n"
            "Can not upgrade metadata.version to 27. The update failed for all features since the following feature had an error:"
            " Invalid update version 27 for feature metadata.version. Local controller 1 does not support this feature.\n"
        ),
    ),
    ("upgrade --feature share.version", 1, ""),
    ("upgrade", 1, ""),
]


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalBroker]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with LocalBroker() as running:
        yield running


def test_the_output_is_that_of_kafkas_tool_and_changes_are_taken_back(broker: LocalBroker) -> None:
    tool = ("compat", "--ak-exit-codes", "kafka-features", "--bootstrap-server", broker.bootstrap_servers)
    for words, code, stdout in RECORDED:
        done = Kgctl()(*tool, *words.split())
        assert (done.exit_code, shape(done.stdout)) == (code, stdout), words
    kgctl = Kgctl(broker.bootstrap_servers)
    last = kgctl.rows("journal")
    assert [(row["verb"], row["outcome"]) for row in last[:2]] == [
        ("cluster set-feature", "done"),
        ("cluster set-feature", "failed"),
    ]
    disabled = last[2]["id"]
    assert kgctl("undo", disabled, "--execute").exit_code == 0
    levels = {row["feature"]: row["level"] for row in kgctl.rows("cluster", "describe", "--features")}
    assert levels["share.version"] == 1


@pytest.mark.parametrize("words", ["version-mapping", "upgrade --release-version 4.1", "upgrade --nope", "nothing"])
def test_what_kgctl_does_not_have_is_refused(words: str) -> None:
    done = Kgctl()("compat", "kafka-features", "--bootstrap-server", "127.0.0.1:1", *words.split())
    assert (done.exit_code, done.stdout, "kafka-features" in done.stderr) == (1, "", True)
