"""The tour of transactions: a worker that is killed in the middle of one, and what readers see."""

from __future__ import annotations

import itertools
import json
import shlex
import time
from collections import Counter

from kgctl.demo.children import DemoFailed, run_kgctl
from kgctl.demo.records import ORDERS, hour_of_records
from kgctl.demo.stage import WAIT_S, Stage, say, take
from kgctl.watch.figures import counted

TOTALS, GROUP, WORKER = "totals", "billing", "billing-1"
ORDER_COUNT, ORDERS_EACH, HANG_IN = 300, 50, 3
STEPS = 8
SESSION_TIMEOUT_MS = 6_000
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"

NEXT = """
What to try next:
  kgctl broker start
  seq 10 | kgctl produce numbers --transactional-id me --transaction-records 4
  kgctl consume numbers --from-beginning --until-end --isolation read_committed
  kgctl transactions list
  kgctl transactions find-hanging
  kgctl broker stop
The worker's source: kgctl/demo/worker.py; all about it: docs/transactions.md
"""


def run() -> int:
    """Take the tour; returns the exit code."""
    return take(_tour, steps=STEPS, session_timeout_ms=SESSION_TIMEOUT_MS, afterwards=NEXT)


def _tour(stage: Stage) -> None:
    _create_and_fill(stage)
    _start_worker(stage)
    _look_inside(stage)
    _kill_and_restart(stage)
    _compare(stage)
    stage.open("Stopping everything")


def _create_and_fill(stage: Stage) -> None:
    stage.open("Creating topics, producing orders")
    stage.kgctl("topics", "create", ORDERS, "--partitions", "3")
    stage.kgctl("topics", "create", TOTALS, "--partitions", "1")
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": stage.bootstrap, "enable.idempotence": True})
    records = hour_of_records(time.time_ns() // 1_000_000)
    for record in itertools.islice((record for record in records if record.topic == ORDERS), ORDER_COUNT):
        producer.produce(ORDERS, record.value, record.key, timestamp=record.timestamp_ms)
    left = producer.flush(WAIT_S)
    if left:
        raise DemoFailed(f"{counted(left, 'order')} were not delivered")
    say(f"  {counted(ORDER_COUNT, 'order')} acknowledged")


def _start_worker(stage: Stage) -> None:
    stage.open(f"Starting a worker: {ORDERS} -> {TOTALS}, up to {ORDERS_EACH} orders in a transaction")
    say("  each transaction has the totals and the offsets of their orders, or neither")
    say(f"  {WORKER} is pid {_work(stage, '--hang-in', str(HANG_IN))}")
    say(f"  before the commit of transaction {HANG_IN}, it hangs")

    def hangs() -> bool:
        (found,) = stage.admin.describe_transactions([WORKER])
        return found.is_open and len(_read(stage, READ_UNCOMMITTED)) == HANG_IN * ORDERS_EACH

    stage.until(hangs, f"the worker to hang in transaction {HANG_IN}")


def _look_inside(stage: Stage) -> None:
    stage.open("Looking inside: what is open, and who waits for it")
    stage.kgctl("transactions", "list")
    stage.kgctl("transactions", "describe", WORKER)
    stage.kgctl("groups", "describe", GROUP)
    _show_counts(stage)


def _kill_and_restart(stage: Stage) -> None:
    stage.open(f"Killing {WORKER} (SIGKILL) in the middle of the transaction")
    stage.children.kill(WORKER)
    say("  the transaction stays open until its timeout, or until a worker with the same id starts")
    stage.kgctl("transactions", "list")
    stage.open(f"Starting {WORKER} again: its first request aborts the open transaction")
    say(f"  {WORKER} is pid {_work(stage)}")
    stage.until(lambda: _lag(stage) == 0, "the worker to read all orders")
    stage.kgctl("transactions", "list")
    stage.kgctl("groups", "describe", GROUP)


def _compare(stage: Stage) -> None:
    stage.open("Counting: each order once, for those who read committed")
    _show_counts(stage)


def _work(stage: Stage, *more: str) -> int:
    return stage.children.start(
        WORKER,
        "kgctl.demo.worker",
        *("--group", GROUP, "--transactional-id", WORKER, "--source", ORDERS, "--target", TOTALS),
        *("--orders", str(ORDERS_EACH), *more),
    )


def _lag(stage: Stage) -> int | None:
    """None while partitions have no committed offset."""
    (found,) = stage.admin.describe_groups([GROUP])
    if found.error is not None or any(row.lag is None for row in found.partitions):
        return None
    return found.total_lag


def _show_counts(stage: Stage) -> None:
    for isolation in (READ_COMMITTED, READ_UNCOMMITTED):
        say(f"  $ kgctl {shlex.join(_command(isolation))}")
        times = Counter(_read(stage, isolation))
        for count, orders in sorted(Counter(times.values()).items()):
            often = "once" if count == 1 else f"{count} times"
            say(f"    {counted(orders, 'order')} {often}")


def _command(isolation: str) -> tuple[str, ...]:
    return ("consume", TOTALS, "--from-beginning", "--until-end", "--isolation", isolation)


def _read(stage: Stage, isolation: str) -> list[str]:
    """The orders in the totals."""
    lines: list[str] = []
    run_kgctl(_command(isolation), stage.bootstrap, lines.append)
    return [str(json.loads(line)["order"]) for line in lines]
