"""The story of the demo, told on stdout while it happens."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from broker.local import LocalBroker
from kgctl.client.admin.admin import Admin
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Endpoint
from kgctl.demo.children import Children, DemoFailed, run_kgctl
from kgctl.demo.records import ORDERS, PAGE_VIEWS, PARTITIONS, hour_of_records
from kgctl.model.groups import GroupDescription

GROUP, SECOND_GROUP = "shop", "reports"
SESSION_TIMEOUT_MS = 3_000
PATIENCE_S = 30.0
LOOK_EVERY_S = 0.05
INTERRUPTED = 130
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CHAPTERS = 9

NEXT = """
What to try next:
  kgctl broker start                                   a broker that stays, on 127.0.0.1:9092
  kgctl topics create orders --partitions 3
  echo 'customer-1|{"total": 12}' | kgctl produce orders --key-separator '|'
  kgctl consume orders --group shop --from-beginning --until-end
  kgctl groups describe shop
  kgctl groups describe shop --members --verbose -o json
  kgctl --bootstrap HOST:PORT groups list              the same commands on any Kafka cluster
  kgctl broker stop
"""


def run(report_dir: Path | None = None) -> int:
    """Tell the story; the exit code. Nothing that it started is left, however it ends.

    With a folder for a report, Spark's view of what happened is the last chapter.
    """
    before = {number: signal.signal(number, _interrupt) for number in STOP_SIGNALS}
    try:
        _tell_story(report_dir)
    except KeyboardInterrupt:
        say("\nInterrupted; everything is stopped.")
        return INTERRUPTED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    say(NEXT.rstrip())
    return 0


def chapters(report_dir: Path | None) -> int:
    return CHAPTERS + (report_dir is not None)


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _interrupt(*_: object) -> None:
    # One is enough: a second one must not interrupt the clearing up.
    _hold_off_signals()
    raise KeyboardInterrupt


def _tell_story(report_dir: Path | None) -> None:
    started = time.monotonic()
    say(f"[1/{chapters(report_dir)}] Starting a broker in a temporary data directory")
    broker = LocalBroker({"group.min.session.timeout.ms": 1000})
    try:
        broker.start()
        say(f"  ready after {(time.monotonic() - started) * 1000:.0f} ms: pid {broker.pid}, data in {broker.data_dir}")
        say(f"  $ export KGCTL_BOOTSTRAP={broker.bootstrap_servers}")
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with (
            Admin(ConnectionSettings((Endpoint(host, int(port)),))) as admin,
            Children(broker.bootstrap_servers, SESSION_TIMEOUT_MS) as children,
        ):
            try:
                _Story(broker.bootstrap_servers, admin, children, started, report_dir).tell()
            finally:
                _hold_off_signals()
    finally:
        _hold_off_signals()
        broker.close()
    say(f"  all stopped, the data directory removed, after {time.monotonic() - started:.0f} s")


def _hold_off_signals() -> None:
    """The end is bounded in time and must not be cut short: a second Ctrl-C would leave children behind."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class _Story:
    def __init__(
        self, bootstrap: str, admin: Admin, children: Children, started: float, report_dir: Path | None
    ) -> None:
        self._bootstrap, self._admin, self._children, self._started = bootstrap, admin, children, started
        self._report_dir = report_dir
        self._chapter = 1

    def tell(self) -> None:
        self._make_topics()
        self._produce()
        self._consume_with_three()
        self._kill_one()
        self._add_one()
        self._leave_a_second_group()
        self._move_its_offsets()
        if self._report_dir is not None:
            self._report(self._report_dir)
        self._open("Stopping everything")

    def _make_topics(self) -> None:
        self._open("Creating topics")
        for topic, partitions in PARTITIONS.items():
            self._kgctl("topics", "create", topic, "--partitions", str(partitions))

    def _produce(self) -> None:
        self._open("Producing the last hour of a shop: orders and page views, keyed by customer")
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "linger.ms": 5})
        refused: list[str] = []
        counts: Counter[str] = Counter()
        total_bytes = 0

        def delivered(error: object, _message: object) -> None:
            if error is not None:
                refused.append(str(error))

        began = time.monotonic()
        for record in hour_of_records(time.time_ns() // 1_000_000):
            producer.produce(
                record.topic, record.value, record.key, timestamp=record.timestamp_ms, on_delivery=delivered
            )
            producer.poll(0)
            counts[record.topic] += 1
            total_bytes += len(record.key) + len(record.value)
        left = producer.flush(PATIENCE_S)
        if refused or left:
            raise DemoFailed(f"{left + len(refused)} records were not delivered: {(refused or ['no answer'])[0]}")
        each = ", ".join(f"{count} to {topic}" for topic, count in sorted(counts.items()))
        say(f"  {each}: {total_bytes / 1e6:.1f} MB acknowledged in {time.monotonic() - began:.1f} s")

    def _consume_with_three(self) -> None:
        self._open(f"Group {GROUP}: three consumers (confluent-kafka), each in a process of its own")
        for name in ("consumer-1", "consumer-2", "consumer-3"):
            pid = self._children.consume(name, GROUP, [ORDERS, PAGE_VIEWS])
            say(f"  {name} is pid {pid}")
        self._watch(GROUP, lambda group: _is_stable(group, 3), "to be stable with three members")
        self._await_read(GROUP)
        self._kgctl("groups", "describe", GROUP)
        self._kgctl("groups", "describe", GROUP, "--members")
        self._kgctl("groups", "describe", GROUP, "--state")

    def _kill_one(self) -> None:
        self._open("SIGKILL for consumer-2: the broker notices when its session times out, and the others take over")
        before = self._look(GROUP)
        self._children.kill("consumer-2")
        after = self._watch(GROUP, lambda group: _is_stable(group, 2), "to be stable with two members")
        self._tell_generations(before, after)
        self._kgctl("groups", "describe", GROUP, "--members")
        self._kgctl("groups", "describe", GROUP, "--state")

    def _add_one(self) -> None:
        self._open("A fourth consumer joins: another rebalance, at once")
        before = self._look(GROUP)
        say(f"  consumer-4 is pid {self._children.consume('consumer-4', GROUP, [ORDERS, PAGE_VIEWS])}")
        after = self._watch(GROUP, lambda group: _is_stable(group, 3), "to be stable with three members")
        self._tell_generations(before, after)
        self._kgctl("groups", "describe", GROUP, "--members")

    def _leave_a_second_group(self) -> None:
        self._open(f"A second group, {SECOND_GROUP}: one consumer reads all orders, commits and leaves")
        self._children.consume("reporter", SECOND_GROUP, [ORDERS], until_end=True)
        self._until(lambda: self._children.has_ended("reporter"), "the reporter to read to the end")
        self._kgctl("groups", "describe", SECOND_GROUP)

    def _move_its_offsets(self) -> None:
        self._open(f"Moving the offsets of {SECOND_GROUP} back by one hour: first the plan, which changes nothing")
        words = ("groups", "reset-offsets", SECOND_GROUP, "--topic", ORDERS, "--by-duration", "PT1H")
        before = self._look(SECOND_GROUP, offsets=True)
        self._kgctl(*words)
        say("  and now for real")
        self._kgctl(*words, "--execute")
        after = self._look(SECOND_GROUP, offsets=True)
        say(f"  what changed: the lag of {SECOND_GROUP} was {before.total_lag} and is {after.total_lag}")
        self._kgctl("groups", "describe", SECOND_GROUP)

    def _report(self, folder: Path) -> None:
        self._open(
            "What all this looked like, worked out by Spark: takes about half a minute, most of it Spark's start"
        )
        jobs = ("decode", "lag", "evaluate", "rebalances")
        self._kgctl(
            "pipeline", "run", *jobs, "--once", "--quick", "--step", "0.5", "--report", "--out", str(folder)
        )  # fmt: skip
        self._kgctl("pipeline", "status", "--out", str(folder))
        say(f"  the report: {folder / 'report.html'}")

    def _open(self, title: str) -> None:
        self._chapter += 1
        say(f"\n[{self._chapter}/{chapters(self._report_dir)}] {title}   ({time.monotonic() - self._started:.0f} s)")

    def _kgctl(self, *words: str) -> None:
        say(f"  $ kgctl {shlex.join(words)}")
        run_kgctl(words, self._bootstrap, lambda line: say(f"  {line}"))

    def _look(self, group: str, *, offsets: bool = False) -> GroupDescription:
        found = self._admin.describe_groups([group], offsets=offsets)[0]
        if found.error is not None and found.error.exit_code != KgctlError.exit_code:
            return GroupDescription(group)
        if found.error is not None:
            raise DemoFailed(f"group {group}: {found.error}")
        return found

    def _watch(self, group: str, done: Callable[[GroupDescription], bool], wish: str) -> GroupDescription:
        """Wait for the group and tell each state that it goes through; the description that ended the wait."""
        began, seen, found = time.monotonic(), "", GroupDescription(group)

        def look() -> bool:
            nonlocal seen, found
            found = self._look(group)
            now = f"{found.state or 'not there yet'}, {_shown(found.generation)}, {len(found.members)} members"
            if now != seen:
                say(f"  {time.monotonic() - began:4.1f} s  {now}")
                seen = now
            return done(found)

        self._until(look, f"group {group} {wish}")
        return found

    def _await_read(self, group: str) -> None:
        def look() -> bool:
            found = self._look(group, offsets=True)
            rows = found.partitions
            return (
                bool(rows)
                and all(row.current_offset is not None or not row.log_end_offset for row in rows)
                and (found.total_lag == 0)
            )

        began = time.monotonic()
        self._until(look, f"group {group} to have read everything")
        say(f"  {time.monotonic() - began:4.1f} s  everything read and committed")

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            self._children.check()
            if time.monotonic() > deadline:
                raise DemoFailed(f"waited {PATIENCE_S:.0f} s in vain for {what}")
            time.sleep(LOOK_EVERY_S)

    def _tell_generations(self, before: GroupDescription, after: GroupDescription) -> None:
        say(
            f"  {_shown(before.generation)} with {len(before.members)} members -> "
            f"{_shown(after.generation)} with {len(after.members)}"
        )


def _is_stable(group: GroupDescription, members: int) -> bool:
    return group.state == "Stable" and len(group.members) == members


def _shown(generation: int | None) -> str:
    return "generation -" if generation is None else f"generation {generation}"
