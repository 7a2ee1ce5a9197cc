"""The producers of a walk, and what they know from the answers so far."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from broker.protocol.errors import ErrorCode

Step = dict[str, Any]
Place = tuple[str, int]  # topic, partition

# Versions of requests by the age of the client. "implicit" is a client that uses transaction.version 2.
VERSIONS: dict[str, dict[str, tuple[int, ...]]] = {
    "first": {
        "InitProducerId": (0, 1, 2),
        "AddPartitionsToTxn": (0, 1),
        "AddOffsetsToTxn": (0, 1),
        "EndTxn": (0, 1),
        "TxnOffsetCommit": (0, 1, 2),
        "Produce": (3, 5, 7, 8),
    },
    "recovering": {  # KIP-360
        "InitProducerId": (3, 4),
        "AddPartitionsToTxn": (2, 3),
        "AddOffsetsToTxn": (2, 3),
        "EndTxn": (2, 3),
        "TxnOffsetCommit": (3,),
        "Produce": (9, 10),
    },
    "verified": {  # KIP-890, first part
        "InitProducerId": (5,),
        "AddPartitionsToTxn": (3,),
        "AddOffsetsToTxn": (4,),
        "EndTxn": (4,),
        "TxnOffsetCommit": (4,),
        "Produce": (11,),
    },
    "implicit": {  # KIP-890, second part
        "InitProducerId": (5,),
        "AddPartitionsToTxn": (3,),
        "AddOffsetsToTxn": (4,),
        "EndTxn": (5,),
        "TxnOffsetCommit": (5,),
        "Produce": (12, 13),
    },
}
LAST_EPOCH = (1 << 15) - 1
SEQUENCES = 1 << 31  # then they start again at 0
FENCED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}


@dataclass
class Sent:
    """A batch that was acknowledged."""

    sequence: int
    count: int


@dataclass
class Producer:
    """A process that produces with a transactional id, or without (then it is idempotent)."""

    client: str
    transactional_id: str | None
    age: str
    timeout_ms: int
    producer_id: str | int = -1
    epoch: int = -1
    former: list[tuple[str | int, int]] = field(default_factory=list)
    sequences: dict[Place, int] = field(default_factory=dict)
    sent: dict[Place, list[Sent]] = field(default_factory=dict)
    added: set[Place] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    must_abort: bool = False
    must_init: bool = False
    is_fenced: bool = False
    last_end: dict[str, Any] | None = None  # the fields of its last EndTxn

    @property
    def is_implicit(self) -> bool:
        return self.age == "implicit"

    @property
    def is_known(self) -> bool:
        return self.producer_id != -1

    @property
    def in_transaction(self) -> bool:
        return bool(self.added or self.groups)

    def identity(self) -> tuple[str | int, int]:
        return self.producer_id, self.epoch

    def takes(self, producer_id: str | int, epoch: int) -> None:
        if (producer_id, epoch) != self.identity():
            if self.is_known:
                self.former.append(self.identity())
            self.producer_id, self.epoch = producer_id, epoch
            self.sequences, self.sent = {}, {}

    def ends(self) -> None:
        self.added, self.groups, self.must_abort = set(), set(), False

    def batch(self, place: Place, at: int, count: int) -> dict[str, Any]:
        """The next batch for a partition."""
        return {
            "at": at,
            "pid": self.producer_id,
            "epoch": self.epoch,
            "seq": self.sequences.get(place, 0) if self.is_known else -1,
            "n": count,
            "tx": self.transactional_id is not None and self.is_known,
            "control": False,
        }


class Producers:
    """All producers of a walk."""

    def __init__(
        self, rng: random.Random, transactional_ids: list[str], ages: list[str], short: dict[str, int]
    ) -> None:
        self.rng, self.ages, self.short = rng, ages, short
        self.all: list[Producer] = []
        for one in transactional_ids:
            self.newcomer(one)
        if rng.random() < 0.35:
            self.newcomer(None)

    def newcomer(self, transactional_id: str | None) -> Producer:
        """Another process with this id."""
        timeout_ms = self.short.get(transactional_id or "") or self.rng.choice((600_000, 700_000, 900_000))
        producer = Producer(f"c{len(self.all) + 1}", transactional_id, self.rng.choice(self.ages), timeout_ms)
        self.all.append(producer)
        return producer

    def learn(self, producer: Producer | None, step: Step, response: Any) -> None:
        if producer is None or not isinstance(response, dict):
            return
        learner = getattr(self, f"_{step['api']}", None)
        if learner is not None:
            learner(producer, step["request"], response)

    def _InitProducerId(self, producer: Producer, request: Step, response: Step) -> None:
        code = response["error_code"]
        if code == ErrorCode.NONE:
            if request["transactional_id"] == producer.transactional_id:
                producer.takes(response["producer_id"], response["producer_epoch"])
                producer.ends()
                producer.must_init = producer.is_fenced = False
        elif code != ErrorCode.CONCURRENT_TRANSACTIONS:
            self._failed(producer, code)

    def _AddPartitionsToTxn(self, producer: Producer, request: Step, response: Step) -> None:
        for topic in response.get("results_by_topic_v3_and_below", []):
            for one in topic["results_by_partition"]:
                code = one["partition_error_code"]
                if code == ErrorCode.NONE:
                    producer.added.add((topic["name"], one["partition_index"]))
                elif code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    self._failed(producer, code)

    def _AddOffsetsToTxn(self, producer: Producer, request: Step, response: Step) -> None:
        if response["error_code"] == ErrorCode.NONE:
            producer.groups.add(request["group_id"])
        else:
            self._failed(producer, response["error_code"])

    def _TxnOffsetCommit(self, producer: Producer, request: Step, response: Step) -> None:
        codes = {one["error_code"] for topic in response["topics"] for one in topic["partitions"]}
        if ErrorCode.NONE in codes and producer.is_implicit:
            producer.groups.add(request["group_id"])
        for code in codes - {ErrorCode.NONE}:
            self._failed(producer, code)

    def _EndTxn(self, producer: Producer, request: Step, response: Step) -> None:
        code = response["error_code"]
        producer.last_end = request
        if code == ErrorCode.NONE:
            producer.ends()
            if response.get("producer_id", -1) != -1:
                producer.takes(response["producer_id"], response["producer_epoch"])
        elif code != ErrorCode.CONCURRENT_TRANSACTIONS:
            self._failed(producer, code)

    def _Produce(self, producer: Producer, request: Step, response: Step) -> None:
        answers = {
            (topic.get("name", topic.get("topic_id", "").removesuffix(".id")), one["index"]): one["error_code"]
            for topic in response["responses"]
            for one in topic["partition_responses"]
        }
        for topic in request["topic_data"]:
            name = topic.get("name", topic.get("topic_id", "").removesuffix(".id"))
            for one in topic["partition_data"]:
                code, place, batch = answers.get((name, one["index"])), (name, one["index"]), one["records"][0]
                if code == ErrorCode.NONE and (batch["pid"], batch["epoch"]) == producer.identity():
                    producer.sequences[place] = (batch["seq"] + batch["n"]) % SEQUENCES
                    producer.sent.setdefault(place, []).append(Sent(batch["seq"], batch["n"]))
                    if batch["tx"] and producer.is_implicit:
                        producer.added.add(place)
                elif code:
                    self._failed(producer, code)

    def _failed(self, producer: Producer, code: int) -> None:
        if code in FENCED:
            producer.is_fenced = True
        elif code in (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_PRODUCER_ID):
            producer.must_init = True
        elif code == ErrorCode.CONCURRENT_TRANSACTIONS:
            pass
        else:
            producer.must_abort = True
            if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                producer.must_init = True
