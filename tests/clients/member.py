"""One member of a group in a process of its own; tells what happens to it as JSON lines.

Commits after each batch it has told of. Leaves the group when its standard input ends, so it never outlives the test.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading

from tests.clients.adapters import CLIENTS, Membership, client_named

# kafka-python 3.0 never takes up its partitions if a poll ends while a join is under way, on any broker: a long poll,
# which returns with the first records anyway, and a signal ends it.
POLL_S = {"kafka-python": 60.0}


def tell(event: str, **fields: object) -> None:
    # A member that is killed must not have told of a commit that it never sent: one write per line.
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


class Stop(Exception):
    """Raised out of a poll."""


class Stopping:
    """Set by a signal, which the end of standard input sends."""

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
    parser.add_argument("--client", required=True, choices=CLIENTS)
    for name in ("bootstrap", "group", "topic", "client-id", "assignor"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--session-timeout-ms", required=True, type=int)
    parser.add_argument("--instance")
    options = parser.parse_args()

    stopping = Stopping()
    membership = Membership(
        options.group,
        options.topic,
        client_id=options.client_id,
        assignor=options.assignor,
        session_timeout_ms=options.session_timeout_ms,
        instance=options.instance,
        on_change=lambda kind, partitions: tell(kind, partitions=partitions),
    )
    consumer = client_named(options.client).member(options.bootstrap, membership)
    tell("started")
    while not stopping.asked:
        try:
            stopping.polling = True
            records = consumer.poll(POLL_S.get(options.client, 0.1))
        except Stop:
            break
        except Exception as error:  # noqa: BLE001 - the same: a client that gives up ends its process
            tell("failed", error=repr(error))
            break
        finally:
            stopping.polling = False
        if not records:
            continue
        tell("records", records=[[r.partition, r.offset, (r.value or b"").decode()] for r in records])
        next_offsets = {r.partition: r.offset + 1 for r in records}
        try:
            consumer.commit(options.topic, next_offsets)
        except Exception as error:  # noqa: BLE001 - each client has its own errors; the scenario judges by what follows
            tell("commit failed", error=repr(error))
        else:
            tell("committed", offsets=next_offsets)
    consumer.close()
    tell("left")


if __name__ == "__main__":
    main()
