"""`python -m kgctl.demo.worker`: reads orders, writes the total of each, and commits both in one transaction.

The loop of every consume-transform-produce program, with confluent-kafka. It leaves on SIGTERM, or when its stdin closes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time

from confluent_kafka import Consumer, Message, Producer

WAIT_S, POLL_S = 3.0, 0.1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m kgctl.demo.worker")
    for name in ("--bootstrap", "--group", "--transactional-id", "--source", "--target"):
        parser.add_argument(name, required=True)
    parser.add_argument("--orders", type=int, required=True, help="how many orders a transaction has")
    parser.add_argument("--hang-in", type=int, help="stop before the commit of this transaction")
    given = parser.parse_args()

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    threading.Thread(target=_wait_for_end_of_stdin, args=(ended,), daemon=True).start()
    work(given, ended)
    return 0


def work(given: argparse.Namespace, ended: threading.Event) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": given.bootstrap,
            "group.id": given.group,
            # A static member: after a crash the worker continues at once, without waiting for the session timeout.
            "group.instance.id": given.transactional_id,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 3,
        }
    )
    producer = Producer(
        {"bootstrap.servers": given.bootstrap, "transactional.id": given.transactional_id, "log_level": 3}
    )
    # Fences a worker with the same id, and aborts what it left open.
    producer.init_transactions()
    consumer.subscribe([given.source])
    number = 0
    try:
        while not ended.is_set():
            orders = next_orders(consumer, given.orders, ended)
            if not orders:
                continue
            number += 1
            producer.begin_transaction()
            for order in orders:
                producer.produce(given.target, total_of(order), order.key())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
            if number == given.hang_in:
                producer.flush()
                ended.wait()
                return
            producer.commit_transaction()
    finally:
        consumer.close()


def next_orders(consumer: Consumer, count: int, ended: threading.Event) -> list[Message]:
    """Up to `count` orders; fewer if no more arrive for some seconds."""
    orders: list[Message] = []
    deadline = time.monotonic() + WAIT_S
    while len(orders) < count and time.monotonic() < deadline and not ended.is_set():
        message = consumer.poll(POLL_S)
        if message is not None and message.error() is None:
            orders.append(message)
            deadline = time.monotonic() + WAIT_S
    return orders


def total_of(message: Message) -> bytes:
    order = json.loads(message.value() or b"")
    return json.dumps({"order": order["order"], "total": order["total"]}, separators=(",", ":")).encode()


def _wait_for_end_of_stdin(ended: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    ended.set()


if __name__ == "__main__":
    sys.exit(main())
