"""The file with the committed offsets of an archive."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from pathlib import Path

import pytest

from broker.local import LocalBroker
from kgctl.client.net.errors import KgctlError
from kgctl.exit_codes import exit_code_of
from kgctl.pipelines.archive.groups import read_groups, write_groups
from kgctl.pipelines.archive.layout import GroupOffset, GroupsSnapshot
from kgctl.pipelines.archive.verifying import verify
from tests.harness.clusters import Cluster
from tests.harness.commandline import Kgctl
from tests.harness.secured_kafka import AUTHORIZER
from tests.kgctl.pipelines.archive.following import Following
from tests.kgctl.pipelines.source.topics import Topics

KNOWN = GroupOffset("g", "t", 0, 5, -1, "", 7000, 2, 9, "Share")
UNKNOWN = GroupOffset("g", "t", 1, 5, 3, "m", None, None, None)


def test_what_is_not_known_stays_so(tmp_path: Path) -> None:
    assert read_groups(tmp_path) is None
    snapshot = GroupsSnapshot(1000, (KNOWN, UNKNOWN))
    write_groups(tmp_path, snapshot)
    assert read_groups(tmp_path) == snapshot


@pytest.mark.parametrize("version", [1, 2])
def test_older_formats_wrote_other_values_for_what_is_not_known(tmp_path: Path, version: int) -> None:
    old = {**asdict(UNKNOWN), "log_start": 0, "log_end": 5}
    content = {"format": version, "taken_ms": 1000, "offsets": [asdict(KNOWN), old]}
    content["crc32"] = zlib.crc32(json.dumps(content, sort_keys=True).encode())
    (tmp_path / "groups.json").write_text(json.dumps(content))
    assert read_groups(tmp_path) == GroupsSnapshot(1000, (KNOWN, UNKNOWN))


def test_a_run_that_may_not_read_the_offsets_of_groups_archives_the_records_and_fails(tmp_path: Path) -> None:
    with LocalBroker({"authorizer.class.name": AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}) as broker:
        kgctl, topics = Kgctl(broker.bootstrap_servers), Topics(broker.bootstrap_servers)
        name = topics.make()
        topics.count(name, 3)
        kgctl.commit("secret", name, p0=1)
        denied = ("acls", "add", "--deny-principal", "User:ANONYMOUS", "--group", "secret", "--operation", "Describe")
        assert kgctl(*denied, "--execute").exit_code == 0
        with Following(topics, tmp_path, name, follow=False) as run:
            failure = run.ends()
    assert failure is not None
    assert exit_code_of(failure) == 4
    assert "the records are archived, but not the committed offsets of groups: " in str(failure)
    assert (verify(tmp_path).records, verify(tmp_path).findings) == (3, ())
    assert read_groups(tmp_path) is None


def test_a_run_says_how_to_replace_offsets_that_are_damaged(our_cluster: Cluster, tmp_path: Path) -> None:
    kgctl, topics = Kgctl(our_cluster.bootstrap_servers), Topics(our_cluster.bootstrap_servers)
    name = topics.make()
    topics.count(name, 3)
    kgctl.commit(f"of-{name}", name, p0=1)

    def run() -> KgctlError | None:
        with Following(topics, tmp_path, name, follow=False) as run:
            return run.ends()

    assert run() is None
    path = tmp_path / "groups.json"
    path.write_text("{")
    failure = run()
    assert f"{path}: the committed offsets are damaged" in str(failure)
    assert str(failure).endswith("; move the file away and run again to add them")
    path.unlink()
    assert run() is None
    found = read_groups(tmp_path)
    assert found is not None
    assert [(one.group, one.offset) for one in found.offsets] == [(f"of-{name}", 1)]


def test_a_run_of_another_topic_keeps_the_offsets_of_earlier_ones(our_cluster: Cluster, tmp_path: Path) -> None:
    kgctl, topics = Kgctl(our_cluster.bootstrap_servers), Topics(our_cluster.bootstrap_servers)
    names = [topics.make() for _ in range(4)]
    stays, gone, renewed, new = names
    for name in names:
        topics.count(name, 3)
        kgctl.commit(f"group-of-{name}", name, p0=1)
    with Following(topics, tmp_path, stays, gone, renewed, follow=False) as run:
        assert run.ends() is None
    kgctl.commit(f"group-of-{stays}", stays, p0=2)
    for name in (gone, renewed):
        topics.delete(name)
    topics.make(name=renewed)
    topics.count(renewed, 3)
    kgctl.commit(f"group-of-{renewed}", renewed, p0=3)
    with Following(topics, tmp_path, new, follow=False) as run:
        assert run.ends() is None
    snapshot = read_groups(tmp_path)
    assert snapshot is not None
    assert {one.topic: one.offset for one in snapshot.offsets if one.topic in names} == {
        stays: 2,
        gone: 1,
        renewed: 1,
        new: 1,
    }
