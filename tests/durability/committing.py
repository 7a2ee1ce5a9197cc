"""A simple consumer (generation -1) in its own process. It commits an increasing number for all partitions at once.

Journal: ["tried", number] before the commit is sent, ["acked", number] after its response, ["failed", number, why].
"""

from __future__ import annotations

import argparse
import itertools

import confluent_kafka as ck

from tests.durability.journal import Journal, end_of_input
from tests.durability.producing import RECONNECT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "topic", "journal", "group"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--partitions", required=True, type=int)
    given = parser.parse_args()
    journal, ended = Journal(given.journal), end_of_input()
    consumer = ck.Consumer(
        {"bootstrap.servers": given.bootstrap, "group.id": given.group, "enable.auto.commit": False, **RECONNECT}
    )
    for number in itertools.count(1):
        journal.note(("tried", number))
        # The metadata repeats the number, to detect an offset with the metadata of another commit.
        wanted = [ck.TopicPartition(given.topic, p, number, str(number)) for p in range(given.partitions)]
        try:
            answers = consumer.commit(offsets=wanted, asynchronous=False)
        except ck.KafkaException as error:
            journal.note(("failed", number, str(error)))
        else:
            errors = [str(answer.error) for answer in answers if answer.error is not None]
            journal.note(("failed", number, errors[0]) if errors else ("acked", number))
        if ended.wait(0.002):
            break
    consumer.close()


if __name__ == "__main__":
    main()
