"""Requests that do not fit: valid ones out of turn, wrong ones, and those of other clients and of administrators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.harness.oracle.transactions.members import NOBODY, SUBSCRIPTION
from tests.harness.oracle.transactions.moves import ADMIN, NO_TOPIC, Moves, by_topic
from tests.harness.oracle.transactions.names import BOGUS_PRODUCER
from tests.harness.oracle.transactions.producers import LAST_EPOCH, SEQUENCES, Place, Producer, Step

STATES = ("Ongoing", "Empty", "CompleteCommit", "CompleteAbort", "PrepareAbort", "Dead", "ongoing", "Nonsense")
Move = Callable[[Producer], "Step | None"]


class OutOfTurn(Moves):
    """Any request, whatever the state of the transaction is."""

    def step(self, producer: Producer) -> Step | None:
        moves: list[tuple[float, Move]] = [
            (9, self._end),
            (9, self._init),
            (7, self._add_partitions),
            (2, self._add_batched),
            (4, self._add_offsets),
            (16, self._produce),
            (4, self._plain_produce),
            (9, self._txn_offset_commit),
            (5, self._offset_commit),
            (2, self._fetch_offsets),
            (2, self._delete_offsets),
            (0.7, self._delete_group),
            (4, self._membership),
            (5, self._markers),
            (1.5, self._describe),
            (3, self._list),
            (1.5, self._describe_producers),
            (3, self._list_offsets),
            (4, self._fetch),
            (2.5, self._delete_records),
            (0.6, self._delete_topic),
            (2, self._newcomer),
            (1, self._find),
        ]
        made: Step | None = self.walk.weighed(*moves)(producer)
        return made

    # ---- transactions

    def _init(self, producer: Producer) -> Step:
        kind = self.rng.random()
        if kind < 0.3:
            return self.init(producer, self.any_identity(producer, 0.4))
        if kind < 0.5 and producer.former:
            return self.init(producer, self.rng.choice(producer.former))
        if kind < 0.7:
            changed = self.walk.weighed(
                (1, {"transaction_timeout_ms": 0}),
                (1, {"transaction_timeout_ms": -1}),
                (1, {"transaction_timeout_ms": 900_001}),
                (1, {"transactional_id": ""}),
                (1, {"transactional_id": None}),
                (1, {"producer_id": -1, "producer_epoch": 3}),
                (1, {"producer_id": BOGUS_PRODUCER, "producer_epoch": -1}),
                (1, {"producer_id": BOGUS_PRODUCER, "producer_epoch": 0, "transactional_id": "$T0"}),
            )
            return self.init(producer, producer.identity() if self.rng.random() < 0.3 else (-1, -1), **changed)
        return self.init(producer)

    def _end(self, producer: Producer) -> Step:
        if producer.last_end is not None and self.rng.random() < 0.4:
            # The answer was lost.
            last = producer.last_end
            committed = last["committed"] if self.rng.random() < 0.7 else not last["committed"]
            return self.end(producer, committed, (last["producer_id"], last["producer_epoch"]))
        version = self.rng.randint(0, 4 + self.walk.takes_implicit) if self.rng.random() < 0.2 else None
        made = self.end(producer, self.rng.random() < 0.5, self.any_identity(producer, 0.6), version)
        return self._with_other_id(producer, made)

    def _add_partitions(self, producer: Producer) -> Step:
        places: list[Place] = self.places()
        if self.rng.random() < 0.2:
            places.append((NO_TOPIC, 0))
        if self.rng.random() < 0.1:
            places.append((places[0][0], 7))
        if self.rng.random() < 0.05:
            places = []
        return self._with_other_id(producer, self.add_partitions(producer, places, self.any_identity(producer, 0.5)))

    def _add_batched(self, producer: Producer) -> Step:
        """What brokers send for their producers: several transactions, or only a verification."""
        others = [one for one in self.producers.all if one.transactional_id not in (None, producer.transactional_id)]
        chosen = [producer, *self.rng.sample(others, min(len(others), self.rng.randint(0, 1)))]
        transactions = []
        for one in chosen:
            producer_id, epoch = self.any_identity(one, 0.7)
            places = self.places() if self.rng.random() < 0.9 else [*self.places(), (NO_TOPIC, 0)]
            transactions.append(
                {
                    "transactional_id": one.transactional_id or "",
                    "producer_id": producer_id,
                    "producer_epoch": epoch,
                    "verify_only": not self.walk.takes_implicit or self.rng.random() < 0.6,
                    "topics": by_topic(places),
                }
            )
        return self.walk.step(producer, "AddPartitionsToTxn", self.rng.choice((4, 5)), transactions=transactions)

    def _add_offsets(self, producer: Producer) -> Step:
        group = self.rng.choice([*self.walk.groups, *self.walk.groups, "$G0", ""])
        return self._with_other_id(producer, self.add_offsets(producer, group, self.any_identity(producer, 0.5)))

    def _with_other_id(self, producer: Producer, step: Step) -> Step:
        """The step, sometimes with another transactional id."""
        if self.rng.random() < 0.12:
            for key in ("transactional_id", "v3_and_below_transactional_id"):
                if key in step["request"]:
                    step["request"][key] = self.rng.choice(("$T0", "", *self.walk.transactional_ids))
        return step

    def _newcomer(self, producer: Producer) -> Step:
        """Another process starts with the same transactional id."""
        return self.init(self.producers.newcomer(producer.transactional_id))

    # ---- records

    def _produce(self, producer: Producer) -> Step:
        places = self.places(3) if self.rng.random() < 0.8 or not producer.added else sorted(producer.added)[:2]
        batches = self.next_batches(producer, places)
        for place, batch in batches.items():
            if self.rng.random() < 0.75:
                batch |= self._flaw(producer, place, batch)
        transactional_id = self.walk.weighed((6, "own"), (1, None), (0.5, "$T0"), (0.5, ""))
        own = self.walk.weighed((9, None), (1, self.rng.choice((3, 8, 10, 11, *(12, 13) * self.walk.takes_implicit))))
        return self.produce(producer, batches, transactional_id=transactional_id, version=own)

    def _flaw(self, producer: Producer, place: Place, batch: dict[str, Any]) -> dict[str, Any]:
        sent = producer.sent.get(place, [])
        producer_id, epoch = self.any_identity(producer, 0.0)
        last, old = sent[-1:], sent[:1]
        flaw: dict[str, Any] = self.walk.weighed(
            (2, {"seq": (batch["seq"] + 5) % SEQUENCES}),
            (1, {"seq": 0}),
            (4 if last else 0, {"seq": last[0].sequence, "n": last[0].count} if last else {}),
            (1 if last else 0, {"seq": last[0].sequence, "n": last[0].count + 1} if last else {}),
            (1.5 if old else 0, {"seq": old[0].sequence, "n": old[0].count} if old else {}),
            (1.5 if batch["pid"] != -1 else 0, {"tx": not batch["tx"]}),
            (3, {"pid": producer_id, "epoch": epoch}),
            (1, {"pid": producer_id, "epoch": epoch, "seq": 0}),
            (1, {"epoch": min(batch["epoch"] + 1, LAST_EPOCH), "seq": 0}),
            (0.7, {"control": True, "n": 1}),
            (0.5, {"pid": -1, "epoch": -1, "seq": -1, "tx": False}),
            (0.5, {"seq": -1}),
            (0.5, {"seq": SEQUENCES - 1, "n": 2}),
        )
        return flaw

    def _plain_produce(self, producer: Producer) -> Step:
        """Records without a producer id, from another client."""
        batches = {
            place: {"at": self.walk.number, "pid": -1, "epoch": -1, "seq": -1, "n": 1, "tx": False, "control": False}
            for place in self.places(2)
        }
        made = self.produce(producer, batches, transactional_id=None, version=self.rng.choice((3, 7, 9, 12, 13)))
        return made | {"client": ADMIN}

    # ---- groups

    def _txn_offset_commit(self, producer: Producer) -> Step:
        group = self.rng.choice([*self.walk.groups * 6, "$G0", ""])
        member = self.walk.members.wrong_identity(group) if self.rng.random() < 0.5 else None
        if group not in self.walk.groups:
            member = NOBODY
        version = self.rng.randint(0, 4 + self.walk.takes_implicit) if self.rng.random() < 0.3 else None
        identity = self.any_identity(producer, 0.7)
        others = [one.producer_id for one in self.producers.all if one.transactional_id != producer.transactional_id]
        made = self.commit_in_transaction(producer, group, identity, member, version)
        step = self._with_other_id(producer, made)
        if identity[0] in others or step["request"]["transactional_id"] != (producer.transactional_id or ""):
            # Kafka takes offsets for a transaction that is open in this partition without looking at the transactional id.
            step["request"] |= {"producer_id": BOGUS_PRODUCER, "producer_epoch": 0}
        return step

    def _offset_commit(self, producer: Producer) -> Step:
        group = self.rng.choice(self.walk.groups)
        member = self.walk.members.identity(group)
        return self.walk.step(
            ADMIN,
            "OffsetCommit",
            self.rng.choice((2, 5, 8, 9)),
            group_id=group,
            generation_id_or_member_epoch=member["generation_id"],
            member_id=member["member_id"],
            topics=self.offsets(group, member),
        )

    def _fetch_offsets(self, producer: Producer) -> Step:
        version = self.rng.choice((2, 6, 7, 7, 8, 9))
        topics = None if self.rng.random() < 0.4 else self._offset_topics()
        group = self.rng.choice(self.walk.groups)
        return self.walk.step(
            ADMIN,
            "OffsetFetch",
            version,
            group_id=group,
            topics=topics,
            groups=[{"group_id": group, "topics": topics}],
            require_stable=self.rng.random() < 0.7,
        )

    def _offset_topics(self) -> list[dict[str, Any]]:
        return [{"name": one["name"], "partition_indexes": one["partitions"]} for one in by_topic(self.places(3))]

    def _delete_offsets(self, producer: Producer) -> Step:
        topics = [
            {"name": one["name"], "partitions": [{"partition_index": p} for p in one["partitions"]]}
            for one in by_topic(self.places(2))
        ]
        return self.walk.step(ADMIN, "OffsetDelete", 0, group_id=self.rng.choice(self.walk.groups), topics=topics)

    def _delete_group(self, producer: Producer) -> Step:
        return self.walk.step(ADMIN, "DeleteGroups", 2, groups_names=[self.rng.choice(self.walk.groups)])

    def _membership(self, producer: Producer) -> Step:
        group = self.rng.choice(self.walk.groups)
        member = self.walk.members.by_group[group]
        if member is not None and self.rng.random() < 0.3:
            leaver = {"member_id": member.member_id, "group_instance_id": member.instance}
            return self.walk.step(ADMIN, "LeaveGroup", 3, group_id=group, member_id=member.member_id, members=[leaver])
        if member is not None and self.rng.random() < 0.5:
            return self.walk.step(
                ADMIN,
                "SyncGroup",
                3,
                group_id=group,
                generation_id=member.generation,
                member_id=member.member_id,
                group_instance_id=member.instance,
                assignments=[{"member_id": member.member_id, "assignment": "share"}],
            )
        instance = (self.rng.choice((None, None, "i1"))) if member is None else member.instance
        member_id = "" if member is None or (instance and self.rng.random() < 0.5) else member.member_id
        return self.walk.step(
            ADMIN,
            "JoinGroup",
            5 if instance or member_id else 3,
            group_id=group,
            session_timeout_ms=300_000,
            rebalance_timeout_ms=300_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": SUBSCRIPTION}],
        )

    # ---- administrators

    def _markers(self, producer: Producer) -> Step:
        """As the tool that ends a hanging transaction does, or a coordinator that was replaced."""
        producer_id, epoch = self.any_identity(producer, 0.6)
        current = self.walk.current(producer.transactional_id)
        coordinator_epoch = self.rng.choice((0, 0, 0, -1))
        if current is None or producer_id != current[0] or epoch > current[1] or self.walk.has_restarted:
            # After a marker with a higher epoch, Kafka never completes a transaction of this producer. A restart of Kafka
            # raises the epoch of its coordinator.
            producer_id, epoch = BOGUS_PRODUCER, self.rng.choice((0, 0, 1, 2))
            coordinator_epoch = self.rng.choice((0, 0, -1, 1, 3))
        topics = by_topic(self.places(2))
        group = self.rng.choice(self.walk.groups)
        if self.rng.random() < 0.4 and self._may_end_offsets(producer, group, producer_id, epoch):
            topics.append({"name": "__consumer_offsets", "partitions": [f"@{group}"]})
            coordinator_epoch = 0
        if self.rng.random() < 0.15:
            topics.append({"name": NO_TOPIC, "partitions": [0]})
        marker = {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "transaction_result": self.rng.random() < 0.4,
            "topics": [{"name": one["name"], "partition_indexes": one["partitions"]} for one in topics],
            "coordinator_epoch": coordinator_epoch,
        }
        return self.walk.step(ADMIN, "WriteTxnMarkers", 1, markers=[marker])

    def _may_end_offsets(self, producer: Producer, group: str, producer_id: str | int, epoch: int) -> bool:
        """Kafka also remembers the epochs of producers that have no pending offsets; then an older epoch is refused."""
        current = self.walk.state.get(producer.transactional_id or "")
        if not isinstance(current, list) or producer_id != current[1]:
            return False
        is_pending = f"__consumer_offsets-@{group}" in current[5] and bool(self.walk.state[group][2])
        return epoch == current[2] or (is_pending and len(self.walk.transactional_ids) == 1)

    def _describe(self, producer: Producer) -> Step:
        ids = self.rng.sample([*self.walk.transactional_ids, "$T0", ""], self.rng.randint(0, 2))
        return self.walk.step(ADMIN, "DescribeTransactions", 0, transactional_ids=ids)

    def _list(self, producer: Producer) -> Step:
        known = [one.producer_id for one in self.producers.all if one.is_known]
        pattern = self.walk.weighed(
            (4, None), (2, producer.transactional_id), (1, ".*T1"), (1, "T1"), (1, ""), (1, "walk.*"), (0.7, "*(")
        )
        return self.walk.step(
            ADMIN,
            "ListTransactions",
            self.rng.randint(0, 2),
            state_filters=self.rng.sample(STATES, self.rng.choice((0, 0, 1, 1, 2))),
            producer_id_filters=[self.rng.choice(known)] if known and self.rng.random() < 0.3 else [],
            duration_filter=self.rng.choice((-1, -1, 60_000)),
            transactional_id_pattern=pattern,
        )

    def _describe_producers(self, producer: Producer) -> Step:
        places = [*self.places(2), *([(NO_TOPIC, 0)] if self.rng.random() < 0.4 else [])]
        if self.rng.random() < 0.3:
            places.append((places[0][0], 7))
        topics = [{"name": one["name"], "partition_indexes": one["partitions"]} for one in by_topic(places)]
        return self.walk.step(ADMIN, "DescribeProducers", 0, topics=topics)

    def _list_offsets(self, producer: Producer) -> Step:
        topics = [
            {
                "name": one["name"],
                "partitions": [
                    {
                        "partition_index": partition,
                        "timestamp": self._timestamp(one["name"], partition),
                    }
                    for partition in one["partitions"]
                ],
            }
            for one in by_topic(self.places(3))
        ]
        version, isolation = self.rng.choice((2, 4, 7, 8)), self.rng.choice((0, 1, 1))
        return self.walk.step(ADMIN, "ListOffsets", version, isolation_level=isolation, topics=topics)

    def _timestamp(self, topic: str, partition: int) -> int | str:
        """For the largest timestamp, Kafka also considers deleted records."""
        chosen: int | str = self.walk.weighed(
            (3, -1), (1, -2), (1, -3), (2, f"+{1000 * self.rng.randint(0, self.walk.number)}")
        )
        state = self.walk.state.get(f"{topic}-{partition}")
        return -1 if chosen == -3 and isinstance(state, list) and state[2] > 0 else chosen

    def _fetch(self, producer: Producer) -> Step:
        topics = [
            {
                "topic": one["name"],
                "topic_id": f"{one['name']}.id",
                "partitions": [
                    {"partition": partition, "fetch_offset": self._offset_of(one["name"], partition)}
                    | {"partition_max_bytes": self.rng.choice((1, 200, 1 << 20))}
                    for partition in one["partitions"]
                ],
            }
            for one in by_topic(self.places(1))
        ]
        return self.walk.step(
            ADMIN,
            "Fetch",
            self.rng.choice((4, 5, 10, 12, 13, 17)),
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=self.rng.choice((0, 1, 1)),
            topics=topics,
        )

    def _offset_of(self, topic: str, partition: int) -> int:
        state = self.walk.state.get(f"{topic}-{partition}")
        if not isinstance(state, list):
            return 0
        high, stable, start = state[:3]
        return int(self.rng.choice((start, start, stable, high, high + 1, self.rng.randint(0, max(high, 1)))))

    def _delete_records(self, producer: Producer) -> Step:
        topics = [
            {
                "name": one["name"],
                "partitions": [
                    {
                        "partition_index": partition,
                        "offset": self.rng.choice((-1, self._offset_of(one["name"], partition))),
                    }
                    for partition in one["partitions"]
                ],
            }
            for one in by_topic(self.places(1))
        ]
        return self.walk.step(ADMIN, "DeleteRecords", self.rng.choice((1, 2)), topics=topics, timeout_ms=30_000)

    def _delete_topic(self, producer: Producer) -> Step | None:
        if len(self.walk.alive) < 2 or self.rng.random() > self.walk.destruction:
            return None
        topic = self.rng.choice(self.walk.alive)
        return self.walk.step(ADMIN, "DeleteTopics", 5, topic_names=[topic], timeout_ms=30_000)

    def _find(self, producer: Producer) -> Step:
        version = self.rng.choice((1, 3, 4, 6))
        key = self.rng.choice((*self.walk.transactional_ids, "", "$T0"))
        return self.walk.step(ADMIN, "FindCoordinator", version, key=key, key_type=1, coordinator_keys=[key])
