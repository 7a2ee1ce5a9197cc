"""One member of a group in its own process. It prints events as JSON Lines.

It prints each batch of records, then commits it. It leaves the group when its standard input ends, hence with the test.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading

from tests.clients.adapters import MEMBERS, Membership, client_named

# kafka-python 3.0 never starts fetching if a poll ends during a join, on any broker. So poll for long; the poll returns
# with the first records, or when a signal interrupts it.
POLL_S = {"kafka-python": 60.0}


def emit(event: str, **fields: object) -> None:
    # One write per line: a member that is killed must not report a commit that it did not send.
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


class Stop(Exception):
    """Interrupts a poll."""


class Stopping:
    """A request to stop: SIGTERM, which the end of standard input also triggers."""

    def __init__(self) -> None:
        self.asked, self.polling = False, False
        signal.signal(signal.SIGTERM, self._ask)
        threading.Thread(target=self._at_end_of_input, daemon=True).start()

    def _ask(self, *_: object) -> None:
        self.asked = True
        if self.polling:
            raise Stop

    def _at_end_of_input(self) -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", required=True, choices=MEMBERS)
    for name in ("bootstrap", "group", "topic", "client-id", "assignor"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--session-timeout-ms", required=True, type=int)
    parser.add_argument("--instance")
    parser.add_argument("--protocol", default="classic")
    options = parser.parse_args()

    stopping = Stopping()
    membership = Membership(
        options.group,
        options.topic,
        client_id=options.client_id,
        assignor=options.assignor,
        session_timeout_ms=options.session_timeout_ms,
        instance=options.instance,
        protocol=options.protocol,
        on_change=lambda kind, partitions: emit(kind, partitions=partitions),
    )
    consumer = client_named(options.client).member(options.bootstrap, membership)
    emit("started")
    while not stopping.asked:
        try:
            stopping.polling = True
            records = consumer.poll(POLL_S.get(options.client, 0.1))
        except Stop:
            break
        except Exception as error:  # noqa: BLE001 - as below; a client that gives up ends its process
            emit("failed", error=repr(error))
            break
        finally:
            stopping.polling = False
        if not records:
            continue
        emit("records", records=[[r.partition, r.offset, (r.value or b"").decode()] for r in records])
        next_offsets = {r.partition: r.offset + 1 for r in records}
        try:
            consumer.commit(options.topic, next_offsets)
        except Exception as error:  # noqa: BLE001 - errors differ by client; the test checks the events
            emit("commit failed", error=repr(error))
        else:
            emit("committed", offsets=next_offsets)
    consumer.close()
    emit("left")


if __name__ == "__main__":
    main()
