"""The reset dialog on a running broker: plan, consent, outcome, keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from textual.widgets import Input

from broker.local import LocalBroker
from kgctl.client.admin.admin import Admin
from kgctl.model.changes import DONE
from kgctl.tui.dialogs.plan import Stage
from kgctl.tui.dialogs.reset import ResetDialog
from kgctl.tui.feed.cluster import ClusterFeed
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.harness.ports import kept_address
from tests.kgctl.tui.dialogs import LARGE, SMALL, GatedFeed, Scene, cluster_feed, opened
from tests.kgctl.tui.waiting import until

STRATEGIES = ("current", "earliest", "latest", "offset", "shift", "duration", "datetime", "file", "group")


@pytest.fixture(scope="module")
def topic(our_cluster: Cluster) -> str:
    """A topic of three partitions with 100, 50 and no records."""
    kgctl, name = Kgctl(our_cluster.bootstrap_servers), fresh("orders")
    assert kgctl("topics", "create", name, "--partitions", 3).exit_code == 0
    fill(kgctl, name, [100, 50, 0])
    return name


@pytest.fixture
def group(kgctl: Kgctl, topic: str) -> str:
    """A group with the committed offsets 60 and 50."""
    name = fresh("g")
    kgctl.commit(name, topic, p0=60, p1=50)
    return name


def offsets(kgctl: Kgctl, group: str) -> dict[tuple[str, int], int | None]:
    with kgctl.admin() as admin:
        found = admin.committed([group])[group]
    assert isinstance(found, dict), found
    return {key: row.offset for key, row in found.items()}


async def choose(scene: Scene, strategy: str) -> None:
    await scene.focus("strategy")
    # The first line of the list is no choice.
    await scene.press("enter", "home", *["down"] * (STRATEGIES.index(strategy) + 1), "enter")


async def write(scene: Scene, widget: str, text: str) -> None:
    await scene.focus(widget)
    await scene.press("end")
    await (scene.paste(text) if len(text) > 4 else scene.type(text))


async def consent(scene: Scene, group: str) -> None:
    await write(scene, "name", group)
    await scene.press("enter")


def run(play: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(play())


def new_offsets(scene: Scene) -> dict[tuple[str, int], int | None]:
    return {(row.topic, row.partition): row.new_offset for row in scene.rows()}


# --- the plan ---


def test_it_opens_on_an_empty_plan_and_changes_nothing(kgctl: Kgctl, feed: ClusterFeed, topic: str, group: str) -> None:
    async def play() -> None:
        async with opened(ResetDialog(feed, group)) as scene:
            assert scene.rows() == []
            assert scene.text("message") == "Choose what to reset to."
            assert scene.text("command") == ""
            assert scene.button().disabled
            await choose(scene, "current")
            assert new_offsets(scene) == {(topic, 0): 60, (topic, 1): 50}
            assert scene.text("totals") == "2 partitions, no change"
            assert scene.text("message") == "Nothing is changed until you consent."
            assert scene.button().disabled
            await scene.press("escape")
            assert scene.app.answers == [False]

    run(play)
    assert offsets(kgctl, group) == {(topic, 0): 60, (topic, 1): 50}


def test_the_preset_scope_can_be_widened(feed: ClusterFeed, topic: str, group: str) -> None:
    async def play() -> None:
        async with opened(ResetDialog(feed, group, topic, 1)) as scene:
            assert scene.dialog.query_one("#topics", Input).value == f"{topic}:1"
            await choose(scene, "earliest")
            assert new_offsets(scene) == {(topic, 1): 0}
            await write(scene, "topics", f" {topic}:2")
            assert new_offsets(scene) == {(topic, 1): 0, (topic, 2): 0}
            assert scene.text("totals") == "2 partitions, 50 records to read again, 1 first commit"

    run(play)


def test_the_plan_is_requested_once_when_typing_stops(our_cluster: Cluster, topic: str, group: str) -> None:
    async def play() -> None:
        feed = GatedFeed(our_cluster.bootstrap_servers)
        async with opened(ResetDialog(feed, group)) as scene:
            await choose(scene, "shift")
            assert scene.rows() == []
            assert scene.text("message") == "Enter records, negative to go back: -100."
            before = feed.asked
            await scene.focus("value")
            await scene.pilot.press("minus", "1", "0")
            assert scene.dialog.stage is Stage.PLANNING
            await scene.settled()
            assert feed.asked == before + 1
            assert new_offsets(scene) == {(topic, 0): 50, (topic, 1): 40}
            assert scene.text("totals") == "2 partitions, 20 records to read again"
        feed.close()

    run(play)


def test_an_answer_to_an_earlier_input_is_dropped(our_cluster: Cluster, topic: str, group: str) -> None:
    async def play() -> None:
        feed = GatedFeed(our_cluster.bootstrap_servers)
        async with opened(ResetDialog(feed, group)) as scene:
            await choose(scene, "offset")
            await scene.focus("value")
            feed.gate.clear()
            asked = feed.asked
            await scene.pilot.press("5")
            await until(lambda: feed.asked == asked + 1)
            await scene.pilot.press("minus")
            feed.gate.set()
            await scene.settled()
            assert scene.text("message") == "Error: '5-' is not a whole number."
            assert scene.rows() == []
        feed.close()

    run(play)


def test_invalid_values_are_one_sentence_each(feed: ClusterFeed, group: str) -> None:
    cases = [
        ("duration", "1x", "Error: '1x' is not a duration; "),
        ("datetime", "noon", "Error: 'noon' is not a time; "),
        ("offset", "x", "Error: 'x' is not a whole number."),
        ("duration", f"P{'9' * 400}D", "Error: The duration is longer than any log."),
        ("file", "/no/such", "Error: Cannot read /no/such: No such file or directory."),
        ("offset", "", "Enter an offset, such as 1200."),
        ("file", "/dev/zero", "Error: Cannot read /dev/zero: it is not a regular file."),
    ]

    async def play() -> None:
        async with opened(ResetDialog(feed, group)) as scene:
            for strategy, text, sentence in cases:
                await choose(scene, strategy)
                if text:
                    await write(scene, "value", text)
                assert scene.text("message").startswith(sentence)
                assert scene.rows() == []
                assert scene.button().disabled

    run(play)


def test_an_offset_beyond_the_log_is_clamped_as_on_the_command_line(feed: ClusterFeed, group: str) -> None:
    async def play() -> None:
        async with opened(ResetDialog(feed, group)) as scene:
            await choose(scene, "offset")
            await write(scene, "value", "99999999999999999999")
            assert {row.new_offset for row in scene.rows()} == {100, 50}
            assert "clamped" in scene.text("detail")

    run(play)


def test_one_error_in_the_scope_blocks_the_whole_reset(kgctl: Kgctl, feed: ClusterFeed, topic: str, group: str) -> None:
    async def play() -> None:
        async with opened(ResetDialog(feed, group, topic)) as scene:
            await choose(scene, "earliest")
            await write(scene, "topics", ":x")
            assert scene.text("message") == f"Error: '{topic}:x' is not TOPIC or TOPIC:P,..."
            assert scene.text("command") == ""
            assert scene.button("copy").disabled
            await scene.press("backspace", "0", "comma", "7")
            assert [row.error is None for row in scene.rows()] == [True, False]
            assert scene.text("message").startswith(f"Error: 1 error in the plan, so nothing can be reset: {topic}-7: ")
            await consent(scene, group)
            assert scene.button().disabled
            assert "as a whole or not at all" in scene.text("message")

    run(play)
    assert offsets(kgctl, group) == {(topic, 0): 60, (topic, 1): 50}


def test_a_group_with_members_is_refused_with_advice_and_planned_once_they_left(
    kgctl: Kgctl, feed: ClusterFeed, topic: str, group: str
) -> None:
    async def play() -> None:
        with member_of(kgctl, group, {topic: [0]}):
            async with opened(ResetDialog(feed, group)) as scene:
                await choose(scene, "current")
                message = scene.text("message")
                assert "if the group" in message
                assert message.endswith("Then press ^r to plan again.")
                assert scene.rows() == []
                with kgctl.admin() as admin:
                    admin.remove_members(group, admin.plan_member_removal(group, everyone=True))
                await scene.press("ctrl+r")
                assert new_offsets(scene) == {(topic, 0): 60, (topic, 1): 50}

    run(play)


def test_a_group_without_commits_needs_topics_and_is_created(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("new")

    async def play() -> None:
        async with opened(ResetDialog(feed, group)) as scene:
            await choose(scene, "earliest")
            assert (
                scene.text("message") == f"Error: Group '{group}' has no committed offsets; name the topics to reset."
            )
            await choose(scene, "latest")
            await write(scene, "topics", f"{topic}:0")
            assert scene.text("message") == "Note: The group does not exist; executing this plan creates it."
            assert " --create " in scene.text("command")
            await consent(scene, group)
            assert scene.text("message").startswith("Done: 1 partition committed")

    run(play)
    assert offsets(kgctl, group) == {(topic, 0): 100}


# --- consent and outcome ---


def test_the_group_id_and_enter_execute_the_plan_and_the_outcome_is_read_back(
    kgctl: Kgctl, feed: ClusterFeed, topic: str, group: str
) -> None:
    async def play() -> None:
        async with opened(ResetDialog(feed, group)) as scene:
            await choose(scene, "earliest")
            await consent(scene, group[:-1])
            assert scene.text("message") == f"Note: Type the group id to consent: {group}"
            assert offsets(kgctl, group) == {(topic, 0): 60, (topic, 1): 50}
            await scene.type(group[-1])
            assert not scene.button().disabled
            await scene.press("enter")
            assert scene.text("message") == "Done: 2 partitions committed and read back as planned."
            assert [row.status for row in scene.rows()] == [DONE, DONE]
            assert scene.text("totals") == "2 partitions, 110 records to read again"
            assert scene.dialog.query_one("#name", Input).value == ""
            assert scene.button().disabled
            assert scene.dialog.focused is scene.button("close")
            await scene.press("enter")
            assert scene.app.answers == [True]

    run(play)
    assert offsets(kgctl, group) == {(topic, 0): 0, (topic, 1): 0}


@pytest.mark.parametrize("by", ["key", "mouse"])
def test_the_button_executes_the_plan(kgctl: Kgctl, feed: ClusterFeed, topic: str, group: str, by: str) -> None:
    async def play() -> None:
        async with opened(ResetDialog(feed, group)) as scene:
            await choose(scene, "latest")
            await write(scene, "name", group)
            if by == "mouse":
                assert await scene.pilot.click("#execute")
                await scene.settled()
                assert await scene.pilot.click("#close")
            else:
                await scene.focus("execute")
                await scene.press("enter")
                await scene.press("escape")
            await scene.settled()
            assert scene.app.answers == [True]

    run(play)
    assert offsets(kgctl, group) == {(topic, 0): 100, (topic, 1): 50}


def test_the_displayed_plan_is_executed(kgctl: Kgctl, feed: ClusterFeed) -> None:
    topic, group = fresh("grows"), fresh("g")
    assert kgctl("topics", "create", topic, "--partitions", 1).exit_code == 0
    fill(kgctl, topic, [10])
    kgctl.commit(group, topic, p0=1)

    async def play() -> None:
        async with opened(ResetDialog(feed, group)) as scene:
            await choose(scene, "latest")
            assert new_offsets(scene) == {(topic, 0): 10}
            fill(kgctl, topic, [10])
            await consent(scene, group)

    run(play)
    assert offsets(kgctl, group) == {(topic, 0): 10}


def test_a_group_with_new_members_is_refused_and_can_be_tried_again(
    kgctl: Kgctl, feed: ClusterFeed, topic: str, group: str
) -> None:
    async def play() -> None:
        async with opened(ResetDialog(feed, group)) as scene:
            await choose(scene, "earliest")
            with member_of(kgctl, group, {topic: [0]}):
                await consent(scene, group)
                message = scene.text("message")
                assert message.startswith("Error: Assignments can only be reset if the group")
                assert message.endswith("Nothing was changed.")
                assert offsets(kgctl, group) == {(topic, 0): 60, (topic, 1): 50}
                assert len(scene.rows()) == 2
                assert scene.dialog.query_one("#name", Input).value == group
                assert not scene.dialog.was_changed
            await scene.press("enter")
            assert scene.text("message").startswith("Done: 2 partitions")

    run(play)
    assert offsets(kgctl, group) == {(topic, 0): 0, (topic, 1): 0}


def test_escape_waits_for_the_outcome_of_a_change(our_cluster: Cluster, kgctl: Kgctl, topic: str, group: str) -> None:
    async def play() -> None:
        feed = GatedFeed(our_cluster.bootstrap_servers)
        async with opened(ResetDialog(feed, group)) as scene:
            await choose(scene, "earliest")
            await write(scene, "name", group)
            feed.gate.clear()
            await scene.pilot.press("enter")
            await until(lambda: scene.dialog.stage is Stage.CHANGING)
            await scene.pilot.press("escape")
            await scene.pilot.press("ctrl+r")
            await scene.pilot.pause()
            assert scene.app.screen is scene.dialog
            assert scene.dialog.stage is Stage.CHANGING
            assert [toast.message for toast in scene.app._notifications] == [
                "The change is in progress. Wait for its outcome."
            ]
            feed.gate.set()
            await scene.settled()
            assert scene.text("message").startswith("Done: ")
            await scene.press("escape")
            assert scene.app.answers == [True]
        feed.close()

    run(play)
    assert offsets(kgctl, group) == {(topic, 0): 0, (topic, 1): 0}


def test_read_only_shows_the_plan_and_executes_nothing(kgctl: Kgctl, feed: ClusterFeed, topic: str, group: str) -> None:
    async def play() -> None:
        async with opened(ResetDialog(feed, group, read_only=True)) as scene:
            await choose(scene, "earliest")
            assert new_offsets(scene) == {(topic, 0): 0, (topic, 1): 0}
            assert str(scene.button().label) == "Reset offsets: read-only"
            assert scene.button().disabled
            assert scene.dialog.query_one("#name", Input).disabled
            assert "Read-only: " in scene.text("message")
            scene.dialog.query_one("#name", Input).value = group
            scene.dialog.execute()
            await scene.settled()
            await scene.press("escape")
            assert scene.app.answers == [False]

    run(play)
    assert offsets(kgctl, group) == {(topic, 0): 60, (topic, 1): 50}


def test_a_lost_broker_is_one_sentence_and_the_dialog_recovers() -> None:
    async def play(broker: LocalBroker, kgctl: Kgctl) -> None:
        feed = cluster_feed(broker.bootstrap_servers)
        async with opened(ResetDialog(feed, "g")) as scene:
            await choose(scene, "earliest")
            broker.kill()
            await scene.press("ctrl+r")
            message = scene.text("message")
            assert message.startswith("Error: ")
            assert feed.cluster.name in message
            assert "\n" not in message
            broker.restart()
            await scene.press("ctrl+r")
            assert len(scene.rows()) == 1
            await write(scene, "name", "g")
            broker.kill()
            await scene.press("enter")
            # The state of the group could not be kept, so the change has not begun.
            assert scene.text("message").endswith("Nothing was changed.")
            await scene.press("escape")
            assert scene.app.answers == [False]
        feed.close()

    with LocalBroker(listen=kept_address()) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "t", "--partitions", 1).exit_code == 0
        fill(kgctl, "t", [5])
        kgctl.commit("g", "t", p0=3)
        asyncio.run(play(broker, kgctl))


# --- keys, names, sizes ---


def test_the_command_is_shown_and_copied_by_key_and_button(feed: ClusterFeed, topic: str, group: str) -> None:
    line = f"kgctl groups reset-offsets {group} --topic {topic} --to-earliest --bootstrap {feed.cluster.name} --execute"

    async def play() -> None:
        async with opened(ResetDialog(feed, group, topic)) as scene:
            await choose(scene, "earliest")
            assert scene.text("command") == f"As a command: {line}"
            for keys in (["y"], ["tab", "ctrl+y"]):
                scene.app._clipboard = ""
                await scene.press(*keys)
                assert scene.app.clipboard == line
            scene.app._clipboard = ""
            assert await scene.pilot.click("#copy")
            await scene.settled()
            assert scene.app.clipboard == line

    run(play)


def test_hostile_names_are_shown_as_text(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("a\x1b]0;x\x07[red]b[/red]\n")
    with kgctl.admin() as admin:
        make(admin, group, topic)
    spelled = group.encode("unicode_escape").decode()

    async def play() -> None:
        async with opened(ResetDialog(feed, group, topic), LARGE) as scene:
            text = scene.screen()
            assert spelled in text
            assert not set(text) & {"\x1b", "\x07"}
            await choose(scene, "earliest")
            assert "\\033]0;x\\007[red]b[/red]\\012" in scene.text("command")
            await consent(scene, spelled)
            assert scene.text("message").startswith("Done: ")

    run(play)
    assert set(offsets(kgctl, group).values()) == {0}


def make(admin: Admin, group: str, topic: str) -> None:
    from kgctl.client.admin.reset_targets import Scope, Target

    done = admin.apply_reset(admin.plan_reset(group, Scope(((topic, None),)), Target("latest")))
    assert not done.failed


@pytest.mark.parametrize("size", [SMALL, (60, 16)])
def test_every_control_is_visible_or_reachable_by_scrolling(
    kgctl: Kgctl, feed: ClusterFeed, size: tuple[int, int]
) -> None:
    topic, group = fresh("wide"), fresh("g")
    assert kgctl("topics", "create", topic, "--partitions", 300).exit_code == 0
    with kgctl.admin() as admin:
        make(admin, group, topic)

    async def play() -> None:
        async with opened(ResetDialog(feed, group), size) as scene:
            await choose(scene, "current")
            width, height = size
            for name in ("execute", "copy", "close", "name"):
                region = scene.dialog.query_one(f"#{name}").region
                assert region.right <= width
                assert region.bottom <= height
            await scene.focus("plan")
            await scene.press("end")
            assert scene.dialog.query_one("#plan").cursor_row.partition == 299  # type: ignore[attr-defined]
            assert "299" in scene.screen()
            for name in ("strategy", "topics", "plan", "name", "close"):
                await scene.focus(name)
                assert scene.dialog.query_one(f"#{name}").region.overlaps(scene.dialog.query_one("#frame").region)

    run(play)
