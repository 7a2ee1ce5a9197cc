"""One member of a group in a process of its own; tells what happens to it as JSON lines.

Commits after each batch it has told of. Leaves the group when its standard input ends, so it never outlives the test.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading

from tests.clients.adapters import CLIENTS, Membership, client_named

POLL_S = 0.1


def tell(event: str, **fields: object) -> None:
    # A member that is killed must not have told of a commit that it never sent: one write per line.
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", required=True, choices=CLIENTS)
    for name in ("bootstrap", "group", "topic", "client-id", "assignor"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--session-timeout-ms", required=True, type=int)
    options = parser.parse_args()

    stopping = threading.Event()

    def stop_at_end_of_input() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    membership = Membership(
        options.group,
        options.topic,
        client_id=options.client_id,
        assignor=options.assignor,
        session_timeout_ms=options.session_timeout_ms,
        on_change=lambda kind, partitions: tell(kind, partitions=partitions),
    )
    consumer = client_named(options.client).member(options.bootstrap, membership)
    tell("started")
    while not stopping.is_set():
        records = consumer.poll(POLL_S)
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
