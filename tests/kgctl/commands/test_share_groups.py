"""`kgctl groups` shows share groups (KIP-932), and sets, deletes and restores their start offsets."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.local import LocalBroker
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from kgctl.client.net.bootstrap import parse
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill
from tests.harness.wire_client import WireClient


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    """A broker with share groups, which a feature enables. Kafka 4.1.0 drops the offsets of every reset."""
    with LocalBroker() as running, connected(running) as client:
        update = UpdateFeaturesRequest.Update(feature="share.version", max_version_level=1, upgrade_type=1)
        assert not client.ask(UpdateFeaturesRequest(feature_updates=[update])).error_code
        yield running


def connected(broker: LocalBroker) -> WireClient:
    (address,) = parse(broker.bootstrap_servers)
    return WireClient((address.host, address.port))


@pytest.fixture
def client(broker: LocalBroker) -> Iterator[WireClient]:
    with connected(broker) as connection:
        yield connection


@pytest.fixture
def kgctl(broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kgctl:
    """With a journal for each test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Kgctl(broker.bootstrap_servers)


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    """Two partitions with 10 and 4 records."""
    name = fresh("t")
    assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
    fill(kgctl, name, [10, 4])
    return name


def beat(client: WireClient, group: str, member: str, epoch: int, *topics: str) -> None:
    request = ShareGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=list(topics) or None
    )
    answer = client.ask(request)
    assert not answer.error_code, (answer.error_code, answer.error_message)


def test_a_share_group_is_reset_when_its_members_have_left(kgctl: Kgctl, client: WireClient, topic: str) -> None:
    group, member = fresh("share"), str(uuid.uuid4())
    beat(client, group, member, 0, topic)
    (listed,) = kgctl.rows("groups", "list", "--match", group)
    assert (listed["type"], listed["state"], listed["members"]) == ("Share", "Stable", 1)
    (row,) = kgctl.rows("groups", "describe", group, "--members")
    assert (row["consumer_id"], row["subscribed"], row["phase"]) == (member, [topic], "stable")
    reset = ["groups", "reset-offsets", group, "--topic", topic, "--shift-by", "-2", "--execute"]
    assert kgctl("groups", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute").exit_code == 6

    beat(client, group, member, -1)
    moved = kgctl.rows("groups", "reset-offsets", group, "--topic", topic, "--to-offset", 3, "--execute")
    assert [(row["partition"], row["new_offset"], row["status"]) for row in moved] == [(0, 3, "done"), (1, 3, "done")]
    assert kgctl(*reset).exit_code == 0
    rows = kgctl.rows("groups", "describe", group)
    found = [(row["partition"], row["current_offset"], row["log_end_offset"], row["lag"]) for row in rows]
    assert found == [(0, 1, 10, 9), (1, 1, 4, 3)]
    described = kgctl("groups", "describe", group, "--explain").stderr
    assert "LAG counts all after it" in described
    assert f"--describe --group {group}" in described.partition("kafka-share-groups.sh")[2]
    assert kgctl("groups", "delete", group, "--execute").exit_code == 0


def emptied(client: WireClient, group: str, *topics: str) -> str:
    """A share group whose only member has left."""
    member = str(uuid.uuid4())
    beat(client, group, member, 0, *topics)
    beat(client, group, member, -1)
    return group


def starts(kgctl: Kgctl, group: str) -> dict[tuple[str, int], int | None]:
    return {(row["topic"], row["partition"]): row["current_offset"] for row in kgctl.rows("groups", "describe", group)}


def done(kgctl: Kgctl, *arguments: object) -> None:
    rows = kgctl.rows(*arguments)
    assert {row["status"] for row in rows} == {"done"}, rows


def test_start_offsets_are_deleted_for_whole_topics_and_given_back(
    kgctl: Kgctl, client: WireClient, topic: str
) -> None:
    other = fresh("t")
    assert kgctl("topics", "create", other).exit_code == 0
    fill(kgctl, other, [5])
    group = emptied(client, fresh("share"), topic, other)
    done(kgctl, "groups", "reset-offsets", group, "--topic", topic, "--topic", other, "--to-offset", 3, "--execute")
    before = {(topic, 0): 3, (topic, 1): 3, (other, 0): 3}
    assert starts(kgctl, group) == before

    refused = kgctl("groups", "delete-offsets", group, "--topic", f"{topic}:0", "--execute")
    assert (refused.exit_code, "can only be deleted for all partitions" in refused.stderr) == (6, True)
    member = str(uuid.uuid4())
    beat(client, group, member, 0, topic)
    refused = kgctl("groups", "delete-offsets", group, "--topic", topic, "--execute")
    assert (refused.exit_code, "NON_EMPTY_GROUP" in refused.stderr) == (6, True)
    beat(client, group, member, -1)
    assert starts(kgctl, group) == before

    done(kgctl, "groups", "delete-offsets", group, "--topic", topic, "--execute")
    assert starts(kgctl, group) == {(other, 0): 3}
    done(kgctl, "undo", "--execute")
    assert starts(kgctl, group) == before


def test_the_lag_of_a_share_group_counts_from_its_start_offsets(kgctl: Kgctl, client: WireClient, topic: str) -> None:
    group = emptied(client, fresh("share"), topic)
    unknown = kgctl("groups", "assert", group, "--for", "lag < 20")
    assert (unknown.exit_code, f"{topic}-0 has no start offset" in unknown.output) == (3, True), unknown.output
    done(kgctl, "groups", "reset-offsets", group, "--topic", topic, "--to-offset", 3, "--execute")
    assert kgctl("groups", "wait", group, "--for", f"type == Share and lag == 8 and lag({topic}) == 8").exit_code == 0
    assert kgctl("groups", "assert", group, "--for", "max_lag > 7").exit_code == 3
    (row,) = kgctl.rows("groups", "list", "--match", group)
    assert row["lag"] == 8
    found = [(row["partition"], row["lag"]) for row in kgctl.rows("groups", "lag", group)]
    assert found == [(0, 7), (1, 1)]
    member = str(uuid.uuid4())
    beat(client, group, member, 0, topic)
    assert kgctl("groups", "assert", group, "--for", "members == 1 and group_epoch > 0 and lag == 8").exit_code == 0


def test_a_reset_is_taken_back(kgctl: Kgctl, client: WireClient, topic: str) -> None:
    group = emptied(client, fresh("share"), topic)
    # Nothing was fetched, so there are no start offsets.
    assert starts(kgctl, group) == {(topic, 0): None, (topic, 1): None}
    assert "has no start offsets" in kgctl("groups", "peek", group).stderr
    done(kgctl, "groups", "reset-offsets", group, "--topic", topic, "--to-offset", 2, "--execute")
    first = kgctl.rows("journal")[-1]["id"]
    done(kgctl, "groups", "reset-offsets", group, "--topic", topic, "--to-latest", "--execute")
    done(kgctl, "undo", "--execute")
    assert starts(kgctl, group) == {(topic, 0): 2, (topic, 1): 2}
    (row, *_) = kgctl.rows("groups", "peek", group, "--topic", f"{topic}:0")
    assert (row["committed_offset"], row["offset"]) == (2, 0)
    done(kgctl, "undo", first, "--execute")
    assert starts(kgctl, group) == {}


def test_a_deleted_share_group_is_made_again(kgctl: Kgctl, client: WireClient, topic: str, tmp_path: Path) -> None:
    group, file = emptied(client, fresh("share"), topic), tmp_path / "groups.json"
    done(kgctl, "groups", "reset-offsets", group, "--topic", topic, "--to-offset", 3, "--execute")
    assert kgctl("groups", "snapshot", "--match", group, "--out", file).exit_code == 0
    before = {(topic, 0): 3, (topic, 1): 3}
    for way in (["undo"], ["groups", "restore", file]):
        assert kgctl("groups", "delete", group, "--execute").exit_code == 0
        assert "a member joins and leaves" in kgctl(*way).stderr
        assert kgctl("groups", "describe", group).exit_code == 5
        done(kgctl, *way, "--execute")
        (row,) = kgctl.rows("groups", "list", "--match", group)
        assert (row["type"], row["state"], starts(kgctl, group)) == ("Share", "Empty", before)


def test_a_share_group_is_cloned_to_share_groups_only(kgctl: Kgctl, client: WireClient, topic: str) -> None:
    group, copy, other = emptied(client, fresh("share"), topic), fresh("copy"), fresh("classic")
    done(kgctl, "groups", "reset-offsets", group, "--topic", topic, "--to-offset", 3, "--execute")
    done(kgctl, "groups", "clone", group, copy, "--execute")
    (row,) = kgctl.rows("groups", "list", "--match", copy)
    assert (row["type"], starts(kgctl, copy)) == ("Share", {(topic, 0): 3, (topic, 1): 3})
    done(kgctl, "undo", "--execute")
    assert kgctl("groups", "describe", copy).exit_code == 5

    kgctl.commit(other, topic, p0=1)
    refused = kgctl("groups", "clone", group, other, "--execute")
    assert (refused.exit_code, "the offsets are those of a share group" in refused.stderr) == (6, True)
    # A share group may begin where another group is.
    done(kgctl, "groups", "clone", other, group, "--execute")
    assert starts(kgctl, group) == {(topic, 0): 1, (topic, 1): 3}


def test_a_name_that_another_group_has_now_is_not_taken_back(kgctl: Kgctl, client: WireClient, topic: str) -> None:
    group = emptied(client, fresh("share"), topic)
    done(kgctl, "groups", "reset-offsets", group, "--topic", topic, "--to-offset", 3, "--execute")
    assert kgctl("groups", "delete", group, "--execute").exit_code == 0
    deletion = kgctl.rows("journal")[-1]["id"]
    kgctl.commit(group, topic, p0=1)
    refused = kgctl("undo", deletion, "--execute", "--force")
    assert (refused.exit_code, "a group of type Classic has its name now" in refused.stderr) == (6, True)
    assert starts(kgctl, group) == {(topic, 0): 1}


def test_share_groups_that_are_disabled_say_what_enables_them(kgctl: Kgctl, client: WireClient, topic: str) -> None:
    group, other = emptied(client, fresh("share"), topic), fresh("classic")
    kgctl.commit(other, topic, p0=1)
    change = ("cluster", "set-feature", "--execute", "--no-journal")
    assert kgctl(*change, "share.version=0", "--downgrade").exit_code == 0
    try:
        listed = kgctl("groups", "list")
        assert (listed.exit_code, other in listed.stdout) == (4, True)
        assert "`kgctl cluster set-feature share.version=1` enables them" in listed.stderr
        assert kgctl("groups", "describe", group).exit_code == 6
    finally:
        assert kgctl(*change, "share.version=1").exit_code == 0
    assert kgctl("groups", "delete", group, "--execute").exit_code == 0
