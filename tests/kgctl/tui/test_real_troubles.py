"""The dashboard on a running broker, with consumers in processes of their own that have every kind of trouble."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from bench import pipelines
from broker.light_dataclasses import replace
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.model.health import Health
from kgctl.model.watched import WatchedGroup
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.observer import LiveObserver
from kgctl.watch.cluster import ClusterView
from kgctl.watch.limits import Limits
from kgctl.watch.trend import levels
from tests.harness.clusters import Cluster, start
from tests.harness.commandline import Kgctl
from tests.harness.troubled_consumer import HEALTHY, NEVER, POISON, SLOW
from tests.kgctl.tui.dialogs import cluster_feed

# The dashboard runs in a thread of its own.
pytestmark = pytest.mark.usefixtures("every_render")
ROOT = Path(__file__).resolve().parents[3]
# A verdict takes seconds instead of minutes, and an abandoned group is unused at once.
LIMITS = Limits(stalled_s=2.0, growth_span_s=3.0, growth_s=1.0, behind_s=30.0, unused_s=0.5, hold_s=0.5)
TOPIC, PARTITIONS, RATE = "clicks", 4, 100
ABANDONED, MEMBERS = 300, 110
PATIENCE_S = 40.0
NEWEST = 10


class Scene:
    """A dashboard that runs in a thread, and the consumers that it watches."""

    def __init__(self, cluster: Cluster, feed: ClusterFeed) -> None:
        self.cluster = cluster
        self.app = KgctlApp(feed, interval_s=0.3, limits=LIMITS)
        self.consumers: dict[str, list[subprocess.Popen[bytes]]] = {}
        self._pilot: Any = None
        self._loop: Any = None
        self._is_open, self._is_over = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def open(self) -> None:
        self._thread.start()
        assert self._is_open.wait(PATIENCE_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with self.app.run_test(size=(120, 40)) as self._pilot:
            self._is_open.set()
            await self._is_over.wait()

    def consume(self, group: str, trouble: str, *, session_ms: int = 6_000, members: int = 1) -> None:
        command = [sys.executable, "-m", "tests.harness.troubled_consumer", trouble, "--group", group]
        command += ["--bootstrap", self.cluster.bootstrap_servers, "--topic", TOPIC]
        processes = self.consumers.setdefault(group, [])
        command += ["--session-ms", str(session_ms), "--members", str(members), "--first", str(len(processes) + 1)]
        processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT))

    @property
    def view(self) -> ClusterView:
        assert self.app.cluster is not None
        return self.app.cluster

    def row(self, group: str) -> WatchedGroup:
        found = self.view.row(group)
        assert found is not None
        return found

    def events(self, group: str) -> list[ClusterEvent]:
        return [event for event in self.view.events if event.group == group]

    @property
    def of_cluster(self) -> list[ClusterEvent]:
        return [event for event in self.view.events if event.kind is EventKind.CLUSTER]

    def said(self, group: str, words: str) -> bool:
        return any(words in event.text for event in self.events(group))

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        """Wait until this holds of a view of all groups."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            if self.app.cluster is not None and (found := holds()):
                return found
            assert time.monotonic() < deadline, f"{what}: {self.summary}"
            threading.Event().wait(0.02)

    @property
    def summary(self) -> object:
        rows = self.app.cluster.rows if self.app.cluster is not None else ()
        known = [(row.group, row.health, row.health_reason) for row in rows if not row.group.startswith("old-")]
        return known, self.app.cluster and self.app.cluster.events[-NEWEST:]

    def judged(self, group: str, health: Health) -> WatchedGroup:
        """The row of this group, once this is its verdict."""

        def judged() -> WatchedGroup | None:
            row = self.view.row(group)
            return row if row is not None and row.health is health else None

        found: WatchedGroup = self.until(judged, f"{group} is {health}")
        return found

    def see(self, *words: str) -> str:
        """The text on the screen, once it has these words."""
        found: str = self.until(
            lambda: (text := self.text) and all(word in text for word in words) and text, repr(words)
        )
        return found

    @property
    def text(self) -> str:
        return self.do(self._text())

    async def _text(self) -> str:
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    def press(self, *keys: str) -> None:
        self.do(self._pilot.press(*keys))

    def do(self, coroutine: Any) -> Any:
        done: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return done.result(PATIENCE_S)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with ExitStack() as stack:
        cluster = stack.enter_context(start("kgctl"))
        kgctl = Kgctl(cluster.bootstrap_servers)
        assert kgctl("topics", "create", TOPIC, "--partitions", PARTITIONS).exit_code == 0
        feed = cluster_feed(cluster.bootstrap_servers)
        stack.callback(feed.close)
        found = Scene(cluster, feed)
        found.consume("crowd", HEALTHY, members=MEMBERS)
        for _ in range(2):
            found.consume("killed", HEALTHY, session_ms=3_000)
        for group, trouble in (("poison", POISON), ("slow", SLOW), ("never", NEVER), ("healthy", HEALTHY)):
            found.consume(group, trouble)
        found.consume("silent", HEALTHY, session_ms=3_000)
        stack.callback(_end, found)
        stack.enter_context(_producing(cluster))
        _abandon(kgctl)
        found.open()
        stack.callback(found.close)
        yield found


def _end(scene: Scene) -> None:
    every = [one for some in scene.consumers.values() for one in some]
    for process in every:
        process.kill()
    for process in every:
        process.communicate()


class _producing:
    """Appends RATE records a second, round robin."""

    def __init__(self, cluster: Cluster) -> None:
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 5})
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._is_over.wait(10 / RATE):
            for place in range(number, number + 10):
                with suppress(BufferError):
                    self._producer.produce(TOPIC, b"%d" % place, partition=place % PARTITIONS)
            number += 10
            self._producer.poll(0)


def _abandon(kgctl: Kgctl) -> None:
    """Groups that once committed, and have no member."""
    host, _, port = (kgctl.bootstrap or "").rpartition(":")
    partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=0, committed_metadata="")
    topics = [OffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])]
    requests = [
        OffsetCommitRequest(group_id=f"old-{number:03}", generation_id_or_member_epoch=-1, member_id="", topics=topics)
        for number in range(ABANDONED)
    ]
    pipelines.ask_all((host, int(port)), requests)


def test_no_group_has_a_verdict_without_evidence(scene: Scene) -> None:
    def judged() -> WatchedGroup | None:
        return next((row for row in scene.view.rows if row.evidence is not None), None)

    row = scene.until(judged, "a group is being judged")
    assert row.health is None
    assert row.health_reason.startswith(f"judging {row.evidence.seen_s:.0f}/{row.evidence.needed_s:.0f} s: ")


def test_a_consumer_that_reads_a_poisoned_record_again_and_again_is_stalled(scene: Scene) -> None:
    reason = scene.judged("poison", Health.STALLED).health_reason
    assert reason.startswith(f"{TOPIC} 0 (owned by poison-1)")
    assert "no commit for " in reason


def test_a_new_dashboard_finds_the_poisoned_record_at_once(scene: Scene) -> None:
    scene.judged("poison", Health.STALLED)
    feed = cluster_feed(scene.cluster.bootstrap_servers)
    try:
        view = asyncio.run(LiveObserver(feed, replace(LIMITS, behind_s=LIMITS.stalled_s)).cluster())
    finally:
        feed.close()
    row = view.row("poison")
    assert row is not None
    assert row.health is Health.STALLED


def test_a_consumer_that_is_too_slow_is_lagging(scene: Scene) -> None:
    assert " grows by " in scene.judged("slow", Health.LAGGING).health_reason


def test_a_consumer_that_never_commits_has_the_lag_from_the_start_of_the_log(scene: Scene) -> None:
    row = scene.judged("never", Health.NEVER_COMMITTED)
    assert row.lag is None
    assert row.unread is not None
    assert row.unread >= RATE
    assert f"up to {row.unread:,} unread records from the start of the log" in row.health_reason
    assert any(value for value in scene.view.lags("never"))


def test_a_group_of_110_members_that_keeps_up_is_ok(scene: Scene) -> None:
    row = scene.judged("crowd", Health.OK)
    assert (row.state, row.members) == ("Stable", MEMBERS)
    assert scene.judged("healthy", Health.OK).members == 1


def test_abandoned_groups_bury_no_fault(scene: Scene) -> None:
    scene.judged("old-000", Health.UNUSED)
    unused = [row for row in scene.view.rows if row.health is Health.UNUSED]
    assert {row.group for row in unused} == {f"old-{number:03}" for number in range(ABANDONED)}
    used = [row.unread or 0 for row in scene.view.rows if row.health is not Health.UNUSED]
    assert sum(row.lag or 0 for row in unused) > 0
    assert scene.view.totals.lag == sum(used)
    lines = scene.see("Needs you 3", f"Groups {len(scene.view.rows)} ", f"unused {ABANDONED} (u hides)").splitlines()
    assert "old-" not in lines[next(place for place, line in enumerate(lines) if "GROUP " in line) + 1]
    scene.press("u")
    assert lines[0].startswith(f" kgctl  {scene.cluster.bootstrap_servers}  1 broker · 1 topic ")
    text = scene.see(f"Groups {len(used)} of {len(scene.view.rows)} ", f"unused {ABANDONED} hidden (u)")
    assert "old-" not in text


def test_a_consumer_that_hangs_is_silent_until_it_is_evicted(scene: Scene) -> None:
    scene.consumers["silent"][0].send_signal(signal.SIGSTOP)
    scene.consumers["killed"][1].kill()
    row = scene.judged("silent", Health.SILENT)
    assert ": no heartbeat for " in row.health_reason
    assert ", evicted in " in row.health_reason
    scene.until(lambda: scene.row("silent").state == "Empty", "the member is evicted")
    assert scene.row("silent").health is not Health.OK
    scene.until(lambda: scene.said("silent", "empty: silent-1 lost (session timed out)"), "the eviction is an event")


def test_a_killed_consumer_is_the_cause_of_a_rebalance(scene: Scene) -> None:
    scene.until(lambda: scene.said("killed", "killed-2 lost (session timed out), 2 partitions moved"), "the rebalance")
    assert scene.judged("killed", Health.OK).members == 1


def test_a_lagging_group_does_not_turn_ok_and_its_trend_grows_while_another_screen_is_open(
    scene: Scene,
) -> None:
    before = scene.judged("slow", Health.LAGGING)
    began_s = scene.view.snapshot.at_s
    scene.press("g", "t")
    seen: set[Health | None] = set()

    def is_over() -> bool:
        seen.add(scene.row("slow").health)
        return scene.view.snapshot.at_s > began_s + LIMITS.growth_span_s + LIMITS.growth_s

    scene.until(is_over, "the window passes")
    after = scene.row("slow")
    # It reads one partition after the other, for longer than the scaled-down limit of STALLED.
    assert Health.LAGGING in seen <= {Health.LAGGING, Health.STALLED}
    assert (after.lag or 0) > (before.lag or 0)
    lags = scene.view.lags("slow")
    assert (lags[-1] or 0) > (before.lag or 0)
    heights = levels(lags, after.rate_in)
    assert heights[-1] == max(height for height in heights if height is not None), heights
    scene.press("g", "g")
    scene.see("Needs you ", "slow ")


def test_a_restart_of_the_broker_is_one_event(scene: Scene) -> None:
    before = scene.view.events
    committed = _committed(scene)
    scene.cluster.kill()
    scene.cluster.restart()
    (restart,) = scene.until(lambda: scene.of_cluster, "the restart is an event")
    assert re.fullmatch(r"broker \d+ restarted", restart.text)
    scene.until(lambda: _committed(scene) > committed, "consumers commit again")
    after = [event for event in scene.view.events if event not in before]
    assert [event for event in after if event.kind is not EventKind.VERDICT] == [restart]


def _committed(scene: Scene) -> int:
    return sum(row.current_offset or 0 for row in scene.view.snapshot.groups["healthy"].partitions)
