"""The steps of the guided tour, narrated on stdout."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kgctl.demo.children import DemoFailed, child_columns
from kgctl.demo.records import ORDERS, PAGE_VIEWS, PARTITIONS, hour_of_records
from kgctl.demo.stage import WAIT_S, Stage, say, take
from kgctl.exit_codes import ERROR, exit_code_of
from kgctl.model.groups import GroupDescription
from kgctl.watch.figures import counted

GROUP, SECOND_GROUP = "shop", "reports"
SESSION_TIMEOUT_MS = 3_000
STEPS = 10
FRAME_LINES = 20

NEXT = """
What to try next:
  kgctl broker start                        a broker that keeps running
  kgctl topics create orders --partitions 3
  echo 'customer-1|{"total": 12}' | kgctl produce orders --key-separator '|'
  kgctl consume orders --group shop --from-beginning --until-end
  kgctl groups describe shop
  kgctl groups describe shop --members --verbose -o json
  kgctl groups history shop
  kgctl ui shop                             the live dashboard
  kgctl groups list --bootstrap HOST:PORT   any Kafka cluster
  kgctl broker stop
"""


def run(report_dir: Path | None = None) -> int:
    """Take the tour; returns the exit code. With a folder for a report, the last step makes it with Spark."""
    steps = STEPS + (report_dir is not None)
    tour = partial(_tour, report_dir=report_dir)
    return take(tour, steps=steps, session_timeout_ms=SESSION_TIMEOUT_MS, afterwards=NEXT)


def _tour(stage: Stage, *, report_dir: Path | None) -> None:
    _Tour(stage, report_dir).run()


class _Tour:
    def __init__(self, stage: Stage, report_dir: Path | None) -> None:
        self._stage, self._admin, self._children = stage, stage.admin, stage.children
        self._report_dir = report_dir

    def run(self) -> None:
        self._create_topics()
        self._produce()
        self._consume_with_three()
        self._kill_one()
        self._add_one()
        self._show_history_and_dashboard()
        self._run_second_group()
        self._move_its_offsets()
        if self._report_dir is not None:
            self._report(self._report_dir)
        self._stage.open("Stopping everything")

    def _create_topics(self) -> None:
        self._stage.open("Creating topics")
        for topic, partitions in PARTITIONS.items():
            self._stage.kgctl("topics", "create", topic, "--partitions", str(partitions))

    def _produce(self) -> None:
        self._stage.open("Producing orders and page views of a shop, keyed by customer")
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._stage.bootstrap, "enable.idempotence": True, "linger.ms": 5})
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
        left = producer.flush(WAIT_S)
        if refused or left:
            raise DemoFailed(f"{left + len(refused)} records were not delivered: {(refused or ['no answer'])[0]}")
        each = ", ".join(f"{count} to {topic}" for topic, count in sorted(counts.items()))
        say(f"  {each}: {total_bytes / 1e6:.1f} MB acknowledged in {time.monotonic() - began:.1f} s")

    def _consume_with_three(self) -> None:
        self._stage.open(f"Starting group {GROUP}: three consumers with confluent-kafka")
        for name in ("consumer-1", "consumer-2", "consumer-3"):
            pid = self._children.consume(name, GROUP, [ORDERS, PAGE_VIEWS])
            say(f"  {name} is pid {pid}")
        self._watch(GROUP, lambda group: _is_stable(group, 3), "to be stable with three members")
        self._await_read(GROUP)
        self._stage.kgctl("groups", "describe", GROUP)
        self._stage.kgctl("groups", "describe", GROUP, "--members")
        self._stage.kgctl("groups", "describe", GROUP, "--state")

    def _kill_one(self) -> None:
        self._stage.open("Killing consumer-2 (SIGKILL): others take over its work")
        before = self._described(GROUP)
        self._children.kill("consumer-2")
        after = self._watch(GROUP, lambda group: _is_stable(group, 2), "to be stable with two members")
        self._say_generations(before, after)
        self._stage.kgctl("groups", "describe", GROUP, "--members")

    def _add_one(self) -> None:
        self._stage.open("Starting a fourth consumer: it triggers a rebalance at once")
        before = self._described(GROUP)
        say(f"  consumer-4 is pid {self._children.consume('consumer-4', GROUP, [ORDERS, PAGE_VIEWS])}")
        after = self._watch(GROUP, lambda group: _is_stable(group, 3), "to be stable with three members")
        self._say_generations(before, after)
        self._stage.kgctl("groups", "describe", GROUP, "--members")

    def _show_history_and_dashboard(self) -> None:
        self._stage.open("Looking back: the history of the rebalances, and the dashboard")
        self._stage.kgctl("groups", "history", GROUP)
        self._stage.kgctl("ui", GROUP, "--once", "--size", f"{child_columns()}x{FRAME_LINES}")

    def _run_second_group(self) -> None:
        self._stage.open(f"Running group {SECOND_GROUP}: a consumer reads all orders and leaves")
        self._children.consume("reporter", SECOND_GROUP, [ORDERS], until_end=True)
        self._stage.until(lambda: self._children.has_ended("reporter"), "the reporter to read to the end")
        self._stage.kgctl("groups", "describe", SECOND_GROUP)

    def _move_its_offsets(self) -> None:
        self._stage.open(f"Moving the offsets of {SECOND_GROUP} back by one hour: first the plan")
        arguments = ("groups", "reset-offsets", SECOND_GROUP, "--topic", ORDERS, "--by-duration", "PT1H")
        before = self._described(SECOND_GROUP, offsets=True)
        self._stage.kgctl(*arguments)
        say("  now apply it")
        self._stage.kgctl(*arguments, "--execute")
        after = self._described(SECOND_GROUP, offsets=True)
        say(f"  the lag of {SECOND_GROUP} was {before.total_lag} and is now {after.total_lag}")
        self._stage.kgctl("groups", "describe", SECOND_GROUP)

    def _report(self, folder: Path) -> None:
        self._stage.open("Making a report with Spark, which takes half a minute")
        jobs = ("decode", "lag", "evaluate", "rebalances")
        self._stage.kgctl(
            "pipeline", "run", *jobs, "--once", "--quick", "--step", "0.5", "--report", "--out", str(folder)
        )  # fmt: skip
        self._stage.kgctl("pipeline", "status", "--out", str(folder))
        say(f"  the report: {folder / 'report.html'}")

    def _described(self, group: str, *, offsets: bool = False) -> GroupDescription:
        found = self._admin.describe_groups([group], offsets=offsets)[0]
        if found.error is not None and exit_code_of(found.error) != ERROR:
            return GroupDescription(group)
        if found.error is not None:
            raise DemoFailed(f"group {group}: {found.error}")
        return found

    def _watch(self, group: str, done: Callable[[GroupDescription], bool], wish: str) -> GroupDescription:
        """Wait until `done` holds for the group, and print each state on the way; returns the last description."""
        began, seen, found = time.monotonic(), "", GroupDescription(group)

        def is_done() -> bool:
            nonlocal seen, found
            found = self._described(group)
            now = f"{found.state or 'does not exist yet'}, {_shown(found.generation)}, {counted(len(found.members), 'member')}"
            if now != seen:
                say(f"  {time.monotonic() - began:4.1f} s  {now}")
                seen = now
            return done(found)

        self._stage.until(is_done, f"group {group} {wish}")
        return found

    def _await_read(self, group: str) -> None:
        def is_read() -> bool:
            found = self._described(group, offsets=True)
            rows = found.partitions
            return (
                bool(rows)
                and all(row.current_offset is not None or not row.log_end_offset for row in rows)
                and (found.total_lag == 0)
            )

        began = time.monotonic()
        self._stage.until(is_read, f"group {group} to read everything")
        say(f"  {time.monotonic() - began:4.1f} s  everything read and committed")

    def _say_generations(self, before: GroupDescription, after: GroupDescription) -> None:
        say(
            f"  {_shown(before.generation)} with {len(before.members)} members -> "
            f"{_shown(after.generation)} with {len(after.members)}"
        )


def _is_stable(group: GroupDescription, members: int) -> bool:
    return group.state == "Stable" and len(group.members) == members


def _shown(generation: int | None) -> str:
    return "generation -" if generation is None else f"generation {generation}"
