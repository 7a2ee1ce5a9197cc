"""What a context forbids, in the dialogs and on the screens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest
from textual.widgets import Input

from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.dialogs.plan import PlanDialog, Stage
from kgctl.tui.dialogs.rebalance import RebalanceDialog
from kgctl.tui.dialogs.removal import RemoveMemberDialog
from kgctl.tui.dialogs.reset import ResetDialog
from kgctl.tui.feed.cluster import ClusterFeed
from tests.harness.commandline import Kgctl, member_of
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.dialogs import opened
from tests.kgctl.tui.groups_scene import Scene as GroupsScene
from tests.kgctl.tui.groups_scene import watching

PROD = ClusterLabel("kafka-1:9093", "prod", "red", options=("--context", "prod"))
DIALOGS: list[Callable[[ClusterFeed, str], PlanDialog]] = [ResetDialog, RebalanceDialog, RemoveMemberDialog]


def feed_of(kgctl: Kgctl, label: ClusterLabel) -> ClusterFeed:
    assert kgctl.bootstrap
    return ClusterFeed(ConnectionSettings(parse(kgctl.bootstrap), timeout=20), label)


@pytest.mark.parametrize("dialog", DIALOGS)
def test_no_dialog_changes_a_group_of_a_read_only_context(
    kgctl: Kgctl, topic: str, dialog: Callable[[ClusterFeed, str], PlanDialog]
) -> None:
    group = f"g-{uuid4().hex[:8]}"

    async def play() -> None:
        async with opened(dialog(feed_of(kgctl, replace(PROD, read_only=True)), group)) as scene:
            assert scene.button().disabled
            assert str(scene.button().label).endswith(": read-only")
            scene.dialog.execute()
            await scene.settled()
            assert scene.dialog.stage is not Stage.CHANGED
            assert "Read-only: " in scene.text("message")

    with member_of(kgctl, group, {topic: [0]}):
        asyncio.run(play())


@pytest.mark.parametrize("dialog", [RebalanceDialog, RemoveMemberDialog])
def test_a_confirming_context_wants_the_group_id_typed(
    kgctl: Kgctl, topic: str, dialog: Callable[[ClusterFeed, str], PlanDialog]
) -> None:
    group = f"g-{uuid4().hex[:8]}"

    async def play() -> None:
        async with opened(dialog(feed_of(kgctl, replace(PROD, must_confirm=True)), group)) as scene:
            if dialog is RemoveMemberDialog:
                await scene.press("down", "space")
            assert scene.button().disabled
            assert f"--context prod --yes {group} --execute" in scene.text("command")
            await scene.focus("name")
            await scene.type(group[:-1])
            await scene.press("enter")
            assert scene.text("message") == f"Note: Type the group id to consent: {group}"
            assert scene.dialog.stage is Stage.PLANNED
            await scene.type(group[-1])
            assert not scene.button().disabled
            if dialog is RemoveMemberDialog:
                await scene.press("enter")
                assert scene.dialog.stage is Stage.CHANGED
                assert scene.dialog.query_one("#name", Input).value == ""

    with member_of(kgctl, group, {topic: [0]}):
        asyncio.run(play())


def test_the_first_line_names_the_context() -> None:
    async def walk(scene: GroupsScene) -> None:
        assert scene.status.startswith("kgctl \u203a prod  ")
        assert "READ-ONLY" in scene.status

    watching([snapshots.snapshot(snapshots.every_state())], walk, cluster=replace(PROD, read_only=True))
