"""`kgctl groups rebalance` with running consumers: one group, several, evictions, and an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

import kgctl.app
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, member_of
from tests.harness.reference_kafka import ReferenceKafka
from tests.harness.running_consumer import running_consumer


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    name = fresh("orders")
    assert kgctl("topics", "create", name, "--partitions", 3).exit_code == 0
    return name


def test_a_rebalance_that_is_awaited_shows_what_each_member_owns_before_and_after(
    cluster: Cluster, kgctl: Kgctl, topic: str
) -> None:
    group = fresh("g")
    is_kafka = isinstance(cluster, ReferenceKafka)
    with running_consumer(kgctl.bootstrap, group, topic):
        if is_kafka:
            refused = kgctl("groups", "rebalance", group, "--execute")
            assert refused.exit_code == 6
            assert "Add --evict" in refused.stderr
        done = kgctl("groups", "rebalance", group, "--evict", "--execute", "--wait", "-o", "json")
        assert done.exit_code == 0, done.output
        table = kgctl("groups", "rebalance", group, "--evict", "--execute", "--wait")
        assert table.exit_code == 0
        if is_kafka:
            # The consumer rejoins under a new id.
            assert ("3->0" in table.stdout, "0->3" in table.stdout) == (True, True)
            assert "; 3 partitions moved." in table.stderr
        else:
            assert "3->3" in table.stdout
            assert "; 0 partitions moved." in table.stderr


def test_a_consumer_group_gets_another_epoch_and_its_history_says_why(
    cluster: Cluster, kgctl: Kgctl, topic: str
) -> None:
    group = fresh("g")
    with running_consumer(kgctl.bootstrap, group, topic, protocol="consumer"):
        if isinstance(cluster, ReferenceKafka):
            refused = kgctl("groups", "rebalance", group, "--execute", "--evict")
            assert refused.exit_code == 6
            assert "cannot trigger a rebalance, and it evicts no members of the consumer protocol" in refused.stderr
            assert kgctl("groups", "rebalance", "--match", group, "--execute", "--evict").exit_code == 5
            return
        (row,) = kgctl.rows("groups", "rebalance", group, "--execute", "--reason", "new racks")
        assert (row["status"], row["method"]) == ("done", "trigger")
        started = kgctl.rows("groups", "history", group, "--all")[-1]
        shown = kgctl("groups", "history", group).stdout
    assert (started["event"], started["cause"], started["reason"]) == (
        "rebalance_started",
        "requested by an admin",
        "new racks",
    )
    assert started["generation"] == row["generation_before"] + 1
    assert "requested by an admin (new racks)" in shown


def test_groups_are_rebalanced_by_pattern_and_one_that_fails_does_not_stop_the_others(
    our_cluster: Cluster,
) -> None:
    kgctl, stem, topic = Kgctl(our_cluster.bootstrap_servers), fresh("etl"), fresh("orders")
    assert kgctl("topics", "create", topic).exit_code == 0
    with member_of(kgctl, f"{stem}-a", {topic: [0]}), member_of(kgctl, f"{stem}-b", {topic: [0]}):
        rows = kgctl.rows("groups", "rebalance", "--match", f"{stem}-.*", "--execute")
        assert [(row["group"], row["status"]) for row in rows] == [(f"{stem}-a", "done"), (f"{stem}-b", "done")]
        partly = kgctl("groups", "rebalance", f"{stem}-a", fresh("absent"), "--execute")
        assert partly.exit_code == 4
        assert "does not exist" in partly.stderr
    assert kgctl("groups", "rebalance", "--match", f"{stem}-.*", "--execute").exit_code == 5


def test_an_interrupted_wait_says_that_the_rebalance_continues(our_cluster: Cluster) -> None:
    kgctl_, group, topic = Kgctl(our_cluster.bootstrap_servers), fresh("g"), fresh("orders")
    assert kgctl_("topics", "create", topic).exit_code == 0
    # Its member does not rejoin, so the wait lasts.
    with member_of(kgctl_, group, {topic: [0]}):
        command = [sys.executable, "-m", "kgctl", "--bootstrap", our_cluster.bootstrap_servers]
        child = subprocess.Popen(
            [*command, "groups", "rebalance", group, "--execute", "--wait"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(kgctl.app.__file__))},
        )
        while kgctl_.rows("groups", "describe", group, "--state")[0]["state"] == "Stable":
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=30)
    assert child.returncode == 130
    assert f"a rebalance was triggered in '{group}'; a rebalance that has begun continues." in said
