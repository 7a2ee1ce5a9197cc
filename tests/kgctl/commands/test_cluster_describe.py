"""`kgctl cluster describe` on a running cluster."""

from __future__ import annotations

from tests.harness.clusters import Cluster
from tests.harness.commandline import Kgctl
from tests.harness.reference_kafka import ReferenceKafka


def test_brokers_have_addresses_and_directories(cluster: Cluster, kgctl: Kgctl) -> None:
    (row,) = kgctl.rows("cluster", "describe")
    assert (row["broker"], row["address"], row["controller"], row["fenced"]) == (
        1,
        cluster.bootstrap_servers,
        True,
        False,
    )
    assert len(row["cluster_id"]) == 22
    assert row["listeners"][0].endswith(cluster.bootstrap_servers)
    assert len(row["log_dirs"]) == 1
    shown = kgctl("cluster", "describe").stdout.splitlines()
    assert shown[1].split()[:2] == ["1*", cluster.bootstrap_servers]
    (directory,) = kgctl.rows("cluster", "describe", "--log-dirs")
    assert (directory["log_dir"], directory["size_bytes"]) == (row["log_dirs"][0], row["size_bytes"])
    assert directory["total_bytes"] >= directory["usable_bytes"] > 0


def test_features_have_levels_and_a_release(cluster: Cluster, kgctl: Kgctl) -> None:
    found = {row["feature"]: row for row in kgctl.rows("cluster", "describe", "--features")}
    row = found["transaction.version"]
    assert row["min_level"] <= row["level"] <= row["max_level"]
    if isinstance(cluster, ReferenceKafka):
        assert (found["metadata.version"]["release"], kgctl.rows("cluster", "describe")[0]["release"]) == ("4.1", "4.1")


def test_apis_have_the_versions_that_are_offered_and_used(kgctl: Kgctl) -> None:
    found = {row["api"]: row for row in kgctl.rows("cluster", "describe", "--api-versions")}
    row = found["Metadata"]
    assert row["min_version"] <= row["used_version"] <= row["max_version"]
