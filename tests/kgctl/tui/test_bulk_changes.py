"""Dialogs of several groups on a running broker: one preview, consent by their number, a result per group, undo."""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import Any

import pytest

from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.dialogs.deletion import DeleteDialog
from kgctl.tui.dialogs.offset_deletion import DeleteOffsetsDialog
from kgctl.tui.dialogs.plan import UNREAD, Stage
from kgctl.tui.dialogs.rebalance import RebalanceDialog
from kgctl.tui.dialogs.removal import RemoveMemberDialog
from kgctl.tui.dialogs.reset import ResetDialog
from kgctl.tui.dialogs.undo import UndoDialog
from kgctl.tui.feed.cluster import ClusterFeed
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.kgctl.tui.dialogs import Scene, opened
from tests.kgctl.tui.test_rebalance import described, living
from tests.kgctl.tui.test_reset import choose, consent, offsets, write


@pytest.fixture(scope="module")
def topic(our_cluster: Cluster) -> str:
    """Two partitions with 100 and 50 records."""
    kgctl, name = Kgctl(our_cluster.bootstrap_servers), fresh("orders")
    assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
    fill(kgctl, name, [100, 50])
    return name


def committed(kgctl: Kgctl, topic: str, count: int) -> list[str]:
    names = [fresh("g") for _ in range(count)]
    for name in names:
        kgctl.commit(name, topic, p0=60, p1=50)
    return names


def statuses(scene: Scene) -> set[tuple[str, str]]:
    return {(row.group, row.status) for row in scene.rows()}


def newest(kgctl: Kgctl) -> dict[str, Any]:
    return kgctl.rows("journal")[-1]


def planned(line: str) -> list[dict[str, Any]]:
    """The rows of the plan that the line prints without --execute; groups that cannot be changed have other rows."""
    words = [word for word in shlex.split(line)[1:] if word != "--execute"]
    found: list[dict[str, Any]] = json.loads(Kgctl()(*words, "-o", "json").stdout)["rows"]
    return found


def test_marked_groups_are_reset_with_one_consent_and_one_that_is_gone_is_told(
    kgctl: Kgctl, feed: ClusterFeed, topic: str
) -> None:
    first, second, gone = committed(kgctl, topic, 3)
    assert kgctl("groups", "delete", gone, "--execute").exit_code == 0

    async def play() -> None:
        async with opened(ResetDialog(feed, [first, second, gone]), (120, 40)) as scene:
            assert scene.rows() == []
            await choose(scene, "earliest")
            assert statuses(scene) == {(first, "planned"), (second, "planned"), (gone, "failed")}
            assert scene.text("message").startswith("Error: 1 of 3 groups cannot be reset and will be left alone: ")
            assert scene.text("ask") == "To execute, type the number of groups and press Enter: 2"
            assert {row["status"] for row in planned(scene.dialog.command())} == {"planned"}
            await write(scene, "name", "3")
            await scene.press("enter")
            assert scene.text("message") == "Note: Type the number of groups to consent: 2"
            await scene.press("backspace")
            await consent(scene, "2")
            assert statuses(scene) == {(first, "done"), (second, "done"), (gone, "failed")}
            assert scene.text("message").startswith("Error: 2 of 3 groups reset and read back as planned; 1 failed: ")

    asyncio.run(play())
    assert [set(offsets(kgctl, name).values()) for name in (first, second)] == [{0}, {0}]
    kept = newest(kgctl)
    assert (kept["verb"], set(kept["groups"])) == ("reset-offsets", {first, second})
    assert kept["command"].startswith(f"kgctl groups reset-offsets {first} {second} {gone} --all-topics --to-earliest ")
    assert kgctl("undo", kept["id"], "--execute").exit_code == 0
    assert set(offsets(kgctl, second).values()) == {60, 50}


def test_groups_are_deleted_and_get_their_offsets_back_by_undo(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    first, second, busy = committed(kgctl, topic, 3)

    async def play() -> None:
        async with opened(DeleteDialog(feed, [first, second, busy])) as scene:
            assert scene.text("totals") == "2 of 3 groups can be deleted, 4 committed offsets"
            await consent(scene, "2")
            assert statuses(scene) == {(first, "done"), (second, "done"), (busy, "failed")}
            assert scene.text("message").startswith("Error: 2 of 3 groups deleted; 1 failed: ")
        async with opened(UndoDialog(feed), (120, 40)) as scene:
            assert scene.text("message") == "Choose a change: Enter shows what takes it back."
            assert scene.rows() == []
            assert scene.button().disabled
            await scene.press("enter")
            assert {(row.group, row.new_offset) for row in scene.rows()} == {
                (name, offset) for name in (first, second) for offset in (60, 50)
            }
            assert planned(scene.dialog.command())
            assert scene.text("ask") == "To execute, type how many names change and press Enter: 2"
            await consent(scene, "2")
            assert scene.text("message").startswith("Done: the change was taken back."), scene.text("message")
            await scene.focus("changes")
            await scene.press("enter")
            assert scene.text("message").startswith("Note: Change ")
            assert scene.text("message").endswith(" has taken it back.")

    with member_of(kgctl, busy, {topic: [0]}):
        asyncio.run(play())
    assert set(offsets(kgctl, first).values()) == {60, 50}
    assert newest(kgctl)["undoes"] is not None


def test_a_deletion_that_is_impossible_says_why_once_and_offers_nothing(
    kgctl: Kgctl, feed: ClusterFeed, topic: str
) -> None:
    (busy,) = committed(kgctl, topic, 1)
    missing = fresh("missing")

    async def play() -> None:
        async with opened(DeleteDialog(feed, busy)) as scene:
            assert scene.text("message").startswith("Error: The group cannot be deleted: the group has active members")
            assert (scene.text("detail"), scene.text("totals"), scene.text("command")) == ("", "", "")
            assert statuses(scene) == {(busy, "failed")}
            assert not scene.button().display
            assert scene.text("ask") == ""
        async with opened(DeleteDialog(feed, [busy, missing])) as scene:
            assert scene.text("message") == "Error: None of the 2 groups can be deleted."
            assert scene.text("detail").startswith(f"{busy}: not deleted: the group has active members")
            assert not scene.button().display
        async with opened(DeleteOffsetsDialog(feed, busy)) as scene:
            await write(scene, "topics", f"{topic}:0")
            assert scene.text("message") == "Error: None of these committed offsets can be deleted."
            assert scene.text("detail").startswith(f"{topic}: not deleted: the group is actively subscribed")
            assert scene.text("command") == ""
            assert not scene.button().display

    with member_of(kgctl, busy, {topic: [0]}):
        asyncio.run(play())


def test_an_undo_whose_plan_is_out_of_date_deletes_nothing(kgctl: Kgctl, feed: ClusterFeed) -> None:
    name = fresh("new")
    assert kgctl("topics", "create", name).exit_code == 0

    async def play() -> None:
        async with opened(UndoDialog(feed), (120, 40)) as scene:
            await scene.press("enter")
            assert [row.note for row in scene.rows()] == ["deletes the topic"]
            fill(kgctl, name, [3])
            await consent(scene, name)
            assert scene.text("message").startswith("Error: what this changes is not as it was"), scene.text("message")
            assert "3 records were written to it since" in scene.text("message")
            assert scene.text("message").endswith("Nothing was changed.")
            await scene.focus("force")
            await scene.press("space")
            (row,) = scene.rows()
            assert row.note == "deletes the topic; 3 records were written to it since, and would be deleted"
            await consent(scene, name)
            assert scene.text("message").startswith("Done: the change was taken back."), scene.text("message")

    asyncio.run(play())
    assert kgctl("topics", "describe", name).exit_code != 0


def test_an_undo_whose_plan_changed_without_a_problem_is_planned_again(
    kgctl: Kgctl, feed: ClusterFeed, topic: str
) -> None:
    (group,) = committed(kgctl, topic, 1)
    assert kgctl("groups", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute").exit_code == 0
    kgctl.commit(group, topic, p0=10)

    async def play() -> None:
        async with opened(UndoDialog(feed), (120, 40)) as scene:
            await scene.press("down", "enter")
            await scene.focus("force")
            await scene.press("space")
            assert [(row.old_offset, row.new_offset) for row in scene.rows()] == [(10, 60), (0, 50)]
            kgctl.commit(group, topic, p0=20)
            await consent(scene, group)
            text = scene.text("message")
            assert text.startswith("Error: what this changes is not as it was when the plan was made; plan again"), text

    asyncio.run(play())
    assert offsets(kgctl, group) == {(topic, 0): 20, (topic, 1): 0}


def test_a_change_that_somebody_else_took_back_meanwhile_is_not_taken_back_again(
    kgctl: Kgctl, feed: ClusterFeed, topic: str
) -> None:
    (group,) = committed(kgctl, topic, 1)
    assert kgctl("groups", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute").exit_code == 0
    change = newest(kgctl)["id"]

    async def play() -> None:
        async with opened(UndoDialog(feed), (120, 40)) as scene:
            await scene.press("enter")
            assert [(row.old_offset, row.new_offset) for row in scene.rows()] == [(0, 60), (0, 50)]
            assert kgctl("undo", change, "--execute").exit_code == 0
            undo = newest(kgctl)["id"]
            kgctl.commit(group, topic, p0=0, p1=0)
            await consent(scene, group)
            text = scene.text("message")
            assert text.startswith(f"Error: Change {undo} has taken it back."), text

    asyncio.run(play())
    assert offsets(kgctl, group) == {(topic, 0): 0, (topic, 1): 0}


def test_offsets_of_a_topic_are_deleted_in_marked_groups(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    first, second = committed(kgctl, topic, 2)

    async def play() -> None:
        async with opened(DeleteOffsetsDialog(feed, [first, second])) as scene:
            assert scene.rows() == []
            await write(scene, "topics", f"{topic}:0")
            assert [(row.group, row.old_offset) for row in scene.rows()] == [
                (name, 60) for name in sorted((first, second))
            ]
            assert len(planned(scene.dialog.command())) == 2
            await consent(scene, "2")
            assert scene.text("message") == "Done: 2 committed offsets deleted."

    asyncio.run(play())
    assert offsets(kgctl, first) == {(topic, 1): 50}
    assert newest(kgctl)["verb"] == "delete-offsets"


def test_marked_groups_are_rebalanced_and_lose_all_members(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    first, second, empty = fresh("g"), fresh("g"), *committed(kgctl, topic, 1)

    async def play() -> None:
        async with opened(RebalanceDialog(feed, [first, second, empty]), (120, 40)) as scene:
            before = described(kgctl, first).generation
            assert scene.text("totals") == "2 groups, 2 members"
            await write(scene, "reason", "busy y x b")
            assert "--reason 'busy y x b'" in scene.dialog.command()
            await consent(scene, "2")
            assert scene.text("message").startswith("Error: 2 of 3 groups rebalanced and Stable; 1 failed: ")
            after = described(kgctl, first).generation
            assert (before or 0) < (after or 0)
        async with opened(RemoveMemberDialog(feed, [first, second, empty]), (120, 40)) as scene:
            assert scene.text("totals") == "0 of 2 members marked; 1 group without members"
            await scene.press("down", "space")
            assert scene.text("ask").endswith("the group id and press Enter: " + scene.dialog.changing()[0])
            assert scene.dialog.command().count("--member") == 1
            await scene.press("a")
            assert f"remove-members {' '.join(sorted((first, second)))} --all " in scene.dialog.command()
            await consent(scene, "2")
            assert scene.text("message") == "Done: 2 members were removed. 2 groups rebalanced."

    with living(kgctl, first, topic, 1), living(kgctl, second, topic, 1):
        asyncio.run(play())
    assert [row["verb"] for row in kgctl.rows("journal")[-2:]] == ["rebalance", "remove-members"]


def test_a_rebalance_that_is_impossible_offers_nothing(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    names = committed(kgctl, topic, 2)

    async def play() -> None:
        async with opened(RebalanceDialog(feed, names), (120, 40)) as scene:
            assert scene.text("message") == "Error: None of the 2 groups can be rebalanced."
            assert (scene.text("totals"), scene.text("command")) == ("", "")
            assert not scene.button().display

    asyncio.run(play())


def test_a_context_that_asks_wants_its_name_for_several_groups(kgctl: Kgctl, topic: str) -> None:
    names = committed(kgctl, topic, 2)
    label = ClusterLabel("kafka-1:9093", "prod", "red", must_confirm=True, options=("--context", "prod"))

    async def play() -> None:
        assert kgctl.bootstrap
        feed = ClusterFeed(ConnectionSettings(parse(kgctl.bootstrap), timeout=20), label)
        async with opened(DeleteDialog(feed, names), (120, 40)) as scene:
            yes = " ".join(f"--yes {name}" for name in names)
            assert scene.dialog.command() == f"kgctl groups delete {' '.join(names)} --context prod {yes} --execute"
            await consent(scene, "2")
            assert scene.text("message") == "Note: Type the name of the context to consent: prod"
            assert scene.dialog.stage is Stage.PLANNED
            await scene.press("backspace")
            await consent(scene, "prod")
            assert scene.text("message") == "Done: 2 groups deleted."
        feed.close()

    asyncio.run(play())
    assert newest(kgctl)["context"] == "prod"


def test_nothing_changes_if_the_journal_cannot_be_written(
    kgctl: Kgctl, feed: ClusterFeed, topic: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (group,) = committed(kgctl, topic, 1)
    (tmp_path / "kgctl").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    async def play() -> None:
        async with opened(DeleteDialog(feed, group)) as scene:
            await consent(scene, group)
            assert "cannot write the journal in" in scene.text("message")
            assert scene.text("message").endswith("; nothing was changed. Free or fix it")
            assert scene.dialog.stage is Stage.PLANNED

    asyncio.run(play())
    assert offsets(kgctl, group)


def test_a_paste_into_a_dialog_that_opens_executes_nothing(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        async with opened(RebalanceDialog(feed, group)) as scene:
            before = described(kgctl, group).generation
            scene.dialog.READING_S = 60.0
            await scene.press("tab", "tab", "tab", "enter", "enter")
            scene.dialog.execute()
            assert scene.text("message") == f"Note: {UNREAD}"
            assert described(kgctl, group).generation == before

    with member_of(kgctl, group, {topic: [0]}):
        asyncio.run(play())
