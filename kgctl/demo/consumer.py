"""`python -m kgctl.demo.consumer`: one consumer of the tour, with confluent-kafka, in its own process.

It commits what it has read. It leaves the group on SIGTERM, or when its stdin closes, which happens when the demo ends.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError

POLL_S = 0.1
LEAVE_S = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m kgctl.demo.consumer")
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--client-id", required=True)
    parser.add_argument("--topic", action="append", required=True)
    parser.add_argument("--session-timeout-ms", type=int, required=True)
    parser.add_argument("--until-end", action="store_true", help="leave at the end of all assigned partitions")
    given = parser.parse_args()

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    threading.Thread(target=_wait_for_end_of_stdin, args=(ended,), daemon=True).start()
    member = Member(given)
    member.consume(ended)
    return 0


class Member:
    """A consumer and the partitions it owns."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._until_end: bool = given.until_end
        self._owned: set[tuple[str, int]] = set()
        self._at_end: set[tuple[str, int]] = set()
        self._consumer = Consumer(
            {
                "bootstrap.servers": given.bootstrap,
                "group.id": given.group,
                "client.id": given.client_id,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
                "session.timeout.ms": given.session_timeout_ms,
                # Does not divide the session timeout, so that the rebalance after a killed member lasts long enough to see.
                "heartbeat.interval.ms": given.session_timeout_ms * 7 // 30,
                "enable.partition.eof": True,
                "log_level": 3,
            }
        )
        self._consumer.subscribe(given.topic, on_assign=self._on_assign, on_revoke=self._on_revoke)

    def consume(self, ended: threading.Event) -> None:
        try:
            while not ended.is_set():
                message = self._consumer.poll(POLL_S)
                if message is None:
                    continue
                partition = (str(message.topic()), int(message.partition() or 0))
                error = message.error()
                if error is None:
                    self._at_end.discard(partition)
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._at_end.add(partition)
                    if self._until_end and self._owned and self._owned <= self._at_end:
                        break
        finally:
            self._consumer.close()

    def _on_assign(self, _consumer: Any, partitions: list[Any]) -> None:
        self._owned |= {(found.topic, found.partition) for found in partitions}

    def _on_revoke(self, _consumer: Any, partitions: list[Any]) -> None:
        gone = {(found.topic, found.partition) for found in partitions}
        self._owned -= gone
        self._at_end -= gone


def _wait_for_end_of_stdin(ended: threading.Event) -> None:
    # Not through sys.stdin: this thread would hold its lock, and the interpreter could not exit.
    while os.read(0, 4096):
        pass
    ended.set()
    # If the broker is gone too, closing the consumer would take much longer.
    time.sleep(LEAVE_S)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
