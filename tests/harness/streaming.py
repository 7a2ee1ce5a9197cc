"""kgctl as a process whose output is read line by line, and another client that checks records."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import Consumer as OtherConsumer
from confluent_kafka import TopicPartition as OtherPartition
from confluent_kafka.admin import AdminClient

PATIENCE_SECONDS = 30.0


class Running:
    """A running kgctl; a thread reads its lines as they arrive."""

    def __init__(self, bootstrap: str, *words: object) -> None:
        environment = os.environ | {"KGCTL_BOOTSTRAP": bootstrap}
        command = [sys.executable, "-m", "kgctl", *map(str, words)]
        pipe = subprocess.PIPE
        self.program = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.seen: list[str] = []

    def line(self) -> str:
        """The next line; fails if none arrives."""
        found = self._lines.get(timeout=PATIENCE_SECONDS)
        assert found is not None, "the program ended"
        self.seen.append(found.decode().rstrip("\n"))
        return self.seen[-1]

    def lines(self, count: int) -> list[str]:
        return [self.line() for _ in range(count)]

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        self.program.send_signal(number)

    def wait(self) -> tuple[int, str]:
        """Exit code and stderr after the process has ended; its remaining lines go to `seen`."""
        assert self.program.stdin is not None
        assert self.program.stderr is not None
        with contextlib.suppress(BrokenPipeError):
            self.program.stdin.close()
        code = self.program.wait(timeout=PATIENCE_SECONDS)
        self._reader.join(timeout=PATIENCE_SECONDS)
        while (rest := self._lines.get_nowait()) is not None:
            self.seen.append(rest.decode().rstrip("\n"))
        return code, self.program.stderr.read().decode()

    def end(self) -> None:
        self.program.kill()
        self.program.wait()
        for stream in (self.program.stdin, self.program.stdout, self.program.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _read(self) -> None:
        assert self.program.stdout is not None
        for line in self.program.stdout:
            self._lines.put(line)
        self._lines.put(None)


@contextlib.contextmanager
def running(bootstrap: str, *words: object) -> Iterator[Running]:
    started = Running(bootstrap, *words)
    try:
        yield started
    finally:
        started.end()


def until(condition: Callable[[], Any], what: str) -> None:
    """Wait for a condition; fails with `what` if it does not become true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def records_of(bootstrap: str, topic: str, partition: int, count: int) -> list[Any]:
    """The first records of a partition, read by librdkafka."""
    consumer = OtherConsumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    try:
        consumer.assign([OtherPartition(topic, partition, 0)])
        found: list[Any] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(found) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
            found += [message for message in consumer.consume(count - len(found), 0.5) if message.error() is None]
        return found
    finally:
        consumer.close()


def delete_records(bootstrap: str, topic: str, partition: int, before: int) -> None:
    """Delete the records of a partition before that offset."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deletion in admin.delete_records([OtherPartition(topic, partition, before)]).values():
        deletion.result(PATIENCE_SECONDS)
