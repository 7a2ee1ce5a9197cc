"""The command lines that the dialogs offer plan the same changes as the dialogs, and are safe to paste."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kgctl.tui import command_line
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.dialogs.rebalance import RebalanceDialog
from kgctl.tui.dialogs.removal import RemoveMemberDialog
from kgctl.tui.dialogs.reset import ResetDialog
from kgctl.tui.feed.cluster import ClusterFeed
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.kgctl.tui.dialogs import Scene, opened
from tests.kgctl.tui.test_reset import choose, write

# Recent enough that retention keeps the records.
BEGAN_MS = int(time.time()) * 1000 - 3 * 3_600_000


def planned(line: str) -> list[dict[str, Any]]:
    """The rows of the plan that the line prints without --execute."""
    arguments = shlex.split(line)
    assert (arguments[0], arguments.count("--execute")) == ("kgctl", 1)
    arguments.remove("--execute")
    return Kgctl().rows(*arguments[1:])


def shown(scene: Scene, *fields: str) -> list[dict[str, Any]]:
    return [{field: getattr(row, field) for field in fields} for row in scene.rows()]


@pytest.fixture(scope="module")
def topics(our_cluster: Cluster) -> list[str]:
    """Two topics of two partitions with 100 and 50 records, one record per ms from BEGAN_MS on."""
    kgctl, names = Kgctl(our_cluster.bootstrap_servers), [fresh("one"), fresh("two")]
    for name in names:
        assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
        fill(kgctl, name, [100, 50], timestamp_ms=BEGAN_MS)
    return names


# Only the command reads records for these.
TIMES = ("old_timestamp", "new_timestamp")


@pytest.mark.parametrize(
    ("strategy", "value", "scope"),
    [
        ("current", "", ""),
        ("earliest", "", "{0}:0,1 {1}"),
        ("latest", "", "{0}"),
        ("offset", "70", ""),
        ("shift", "-10", ""),
        ("shift", "5", "{1}:1"),
        ("duration", "PT4H", ""),
        pytest.param("datetime", datetime.fromtimestamp(BEGAN_MS / 1000 + 0.005, UTC).isoformat(), "", id="datetime"),
        ("file", "a plan's.csv", ""),
    ],
)
def test_the_line_of_the_reset_dialog_has_the_same_plan(
    kgctl: Kgctl, feed: ClusterFeed, topics: list[str], tmp_path: Path, strategy: str, value: str, scope: str
) -> None:
    (one, two), group = topics, fresh("g")
    for topic in topics:
        kgctl.commit(group, topic, p0=60, p1=20)
    if strategy == "file":
        value = str(tmp_path / value)
        Path(value).write_text(f"{one},0,7\n{two},1,8\n")

    async def play() -> None:
        async with opened(ResetDialog(feed, group)) as scene:
            await choose(scene, strategy)
            if scope:
                await write(scene, "topics", scope.format(one, two))
            if value:
                await write(scene, "value", value)
            line = scene.dialog.command()
            assert scene.text("command").endswith(line)
            rows = planned(line)
            assert rows
            assert shown(scene, "topic", "partition", "old_offset", "new_offset", "delta", "note", "status") == [
                {name: row[name] for name in row if name not in ("group", "error", *TIMES)} for row in rows
            ]

    asyncio.run(play())


def test_the_lines_of_the_other_dialogs_have_the_same_plans(kgctl: Kgctl, feed: ClusterFeed) -> None:
    topic, group = fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic, "--partitions", 1).exit_code == 0

    async def play(member_id: str, instance: str | None) -> None:
        async with opened(RebalanceDialog(feed, group)) as scene:
            await write(scene, "reason", "it's time")
            (row,) = planned(scene.dialog.command())
            assert shown(scene, "consumer_id", "method") == [{"consumer_id": member_id, "method": row["method"]}]
            assert "--reason 'it'\"'\"'s time'" in scene.text("command")
        async with opened(RemoveMemberDialog(feed, group, member_id)) as scene:
            (row,) = planned(scene.dialog.command())
            assert (row["consumer_id"], row["group_instance_id"]) == (member_id, instance)
            assert scene.dialog.command()
            assert ("--instance" in scene.text("command")) == (instance is not None)

    for instance in (None, "worker-1"):
        with member_of(kgctl, group, {topic: [0]}, instance) as member_id:
            asyncio.run(play(member_id, instance))
            if instance:
                with kgctl.admin() as admin:
                    admin.remove_members(group, admin.plan_member_removal(group, everyone=True))


@pytest.mark.parametrize(
    "name",
    ["plain", "two words", "it's", "$(reboot)`x`", "-x", "\x1b]0;x\x07", "a\nb", "\u202e1", "ü\t7", "back\\slash\x01"],
)
def test_a_shell_reads_names_back_without_control_characters(name: str) -> None:
    line = command_line.line(
        command_line.reset_offsets(ClusterLabel("127.0.0.1:9092"), [name], "to-offset", "5", [name])
    )
    assert line.isprintable()
    output = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    ).stdout.decode()
    found = output.split("\0")[:-1]
    assert found[-1] == name if name.startswith("-") else found[3] == name
    assert found[found.index("--topic") + 1] == name


def test_a_group_that_looks_like_an_option_is_a_group(kgctl: Kgctl) -> None:
    words = command_line.remove_members(ClusterLabel(str(kgctl.bootstrap)), ["--all"], ["m"])
    result = Kgctl()(*[word for word in words[1:] if word != "--execute"])
    assert "'--all'" in result.stderr
    assert result.exit_code == 5
