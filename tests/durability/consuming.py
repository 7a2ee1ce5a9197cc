"""A librdkafka member of the group in its own process. It notes each batch, then commits it.

Journal: ["joined", generation, member id, leader id] for a JoinGroup response, ["received", partition, first offset,
last offset], ["acked", partition, next offset] for a commit, ["failed", why].
"""

from __future__ import annotations

import argparse
import itertools
import logging
import re

import confluent_kafka as ck

from tests.durability.journal import Journal, end_of_input
from tests.durability.producing import RECONNECT

# The binding does not expose the generation of the member, but the log of the library does.
ANSWER = re.compile(
    r"JoinGroup response: GenerationId (-?\d+), Protocol [^,]*, LeaderId ([^ ,]+)(?: \(me\))?, my MemberId ([^ ,]+)"
)


class Answers(logging.Handler):
    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        found = ANSWER.search(line)
        if found and int(found[1]) >= 0:
            self._journal.note(("joined", int(found[1]), found[3], found[2]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "topic", "journal", "group", "name"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    journal, ended = Journal(given.journal), end_of_input()
    logger = logging.getLogger("librdkafka")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(Answers(journal))
    consumer = ck.Consumer(
        {
            "bootstrap.servers": given.bootstrap,
            "group.id": given.group,
            "client.id": given.name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 2000,
            "heartbeat.interval.ms": 200,
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
            "debug": "cgrp",
            **RECONNECT,
        },
        logger=logger,
    )
    consumer.subscribe([given.topic])
    while not ended.is_set():
        messages = [m for m in consumer.consume(100, 0.05) if m.error() is None]
        if not messages:
            continue
        places = sorted((m.partition(), m.offset()) for m in messages)
        runs = []
        for _, run in itertools.groupby(enumerate(places), lambda item: (item[1][0], item[1][1] - item[0])):
            at = [place for _, place in run]
            runs.append(("received", at[0][0], at[0][1], at[-1][1]))
        journal.note(*runs)
        wanted = [ck.TopicPartition(given.topic, p, offset + 1) for p, offset in dict(places).items()]
        try:
            answers = consumer.commit(offsets=wanted, asynchronous=False)
        except ck.KafkaException as error:
            journal.note(("failed", str(error)))
        else:
            journal.note(*(("acked", a.partition, a.offset) for a in answers if a.error is None))
    consumer.close()


if __name__ == "__main__":
    main()
