"""kgctl as a process whose output is read line by line, and another client that checks records."""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

from confluent_kafka import Consumer as OtherConsumer
from confluent_kafka import TopicPartition as OtherPartition
from confluent_kafka.admin import AdminClient

PATIENCE_SECONDS = 30.0
_PIPE_BYTES = 65_536


class Running:
    """A running kgctl; threads read its lines as they arrive. Without `is_read`, nothing reads its output until `rest`."""

    def __init__(self, bootstrap: str, *words: object, is_read: bool = True) -> None:
        environment = os.environ | {"KGCTL_BOOTSTRAP": bootstrap}
        command = [sys.executable, "-m", "kgctl", *map(str, words)]
        pipe = subprocess.PIPE
        self.program = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        assert self.program.stdout is not None
        assert self.program.stderr is not None
        self._lines = _LineReader(self.program.stdout, is_read)
        self._errors = _LineReader(self.program.stderr)
        self._waiting = -1
        self.seen: list[str] = []

    def line(self) -> str:
        """The next line; fails if none arrives."""
        self.seen.append(self._lines.line())
        return self.seen[-1]

    def lines(self, count: int) -> list[str]:
        return [self.line() for _ in range(count)]

    def error_line(self) -> str:
        """The next line of stderr; fails if none arrives."""
        return self._errors.line()

    def is_blocked(self) -> bool:
        """Whether nobody has read the output for a while and the pipe is full. Call it repeatedly."""
        assert self.program.stdout is not None
        answer = fcntl.ioctl(self.program.stdout, termios.FIONREAD, struct.pack("i", 0))
        before, self._waiting = self._waiting, struct.unpack("i", answer)[0]
        return before == self._waiting > _PIPE_BYTES / 2

    def rest(self) -> list[str]:
        """All whole lines of a program that has ended and was not read."""
        assert self.program.stdout is not None
        return [line.decode() for line in self.program.stdout.read().split(b"\n")[:-1]]

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        self.program.send_signal(number)

    def wait(self) -> tuple[int, str]:
        """Exit code and stderr after the process has ended; its remaining lines go to `seen`."""
        assert self.program.stdin is not None
        assert self.program.stderr is not None
        with contextlib.suppress(BrokenPipeError):
            self.program.stdin.close()
        code = self.program.wait(timeout=PATIENCE_SECONDS)
        self.seen += self._lines.rest()
        self._errors.rest()
        return code, "".join(f"{line}\n" for line in self._errors.all)

    def end(self) -> None:
        self.program.kill()
        self.program.wait()
        for stream in (self.program.stdin, self.program.stdout, self.program.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


class _LineReader:
    """Reads lines in a thread."""

    def __init__(self, stream: IO[bytes], is_read: bool = True) -> None:
        self._stream = stream
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self.all: list[str] = []
        if is_read:
            self._thread.start()

    def line(self) -> str:
        found = self._queue.get(timeout=PATIENCE_SECONDS)
        assert found is not None, "the program ended"
        return found

    def rest(self) -> list[str]:
        """What was not returned yet, after the end of the program."""
        self._thread.join(timeout=PATIENCE_SECONDS)
        found = []
        while (line := self._queue.get_nowait()) is not None:
            found.append(line)
        return found

    def _read(self) -> None:
        for line in self._stream:
            self.all.append(line.decode().rstrip("\n"))
            self._queue.put(self.all[-1])
        self._queue.put(None)


@contextlib.contextmanager
def running(bootstrap: str, *words: object, is_read: bool = True) -> Iterator[Running]:
    started = Running(bootstrap, *words, is_read=is_read)
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
