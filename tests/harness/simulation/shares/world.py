"""The world of one seed: share groups on successive brokers over one disk, with the real handlers, share coordinator and partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from typing import Any

from broker.config.config import BrokerConfig
from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.settings import GroupSettings
from broker.cores.share.acknowledgement import Acknowledgement, release
from broker.cores.share.acquisition import AbortedFrom, Acquired, FetchedBatch, Wanted
from broker.cores.share.in_flight import FINISHED
from broker.cores.share.partition import Refusal, SharePartition
from broker.protocol.share_state import SharePartitionKey
from broker.server.features import SHARE_VERSION
from broker.server.log_topics import LogTopics
from broker.server.share_runner import ShareRunner
from tests.harness.simulation.clock import MS, SECOND
from tests.harness.simulation.shares.judge import ShareJudge
from tests.harness.simulation.shares.member import TOPIC, Producer, ShareMember
from tests.harness.simulation.transactions import world as transactional
from tests.harness.simulation.transactions.broker import Broker
from tests.harness.simulation.transactions.faults import Faults
from tests.harness.simulation.world import Outcome

CALM_US = 300 * SECOND


class WatchedShares(ShareRunner):
    """The judge sees what happens to records. Loaded with the broker: state is in use before the first member comes back."""

    judge: ShareJudge

    def acquire(
        self,
        partition: SharePartition,
        wanted: Wanted,
        fetch_offset: int,
        batches: Sequence[FetchedBatch],
        aborted: Collection[AbortedFrom],
    ) -> list[Acquired]:
        acquired = super().acquire(partition, wanted, fetch_offset, batches, aborted)
        self.judge.acquired(partition.key, wanted, acquired)
        return acquired

    def acknowledge(
        self, key: SharePartitionKey, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> Refusal | None:
        refusal = super().acknowledge(key, member_id, acknowledgements)
        if refusal is None:
            self.judge.acknowledged(key, member_id, acknowledgements)
        return refusal

    def _step(self, run: Callable[..., Any], *arguments: Any) -> Any:
        found = super()._step(run, *arguments)
        if run is release:
            partition, member_id = arguments
            self.judge.session_ended(partition.key, member_id)
        return found

    def _expire(self, name: tuple[str, ...], now_ms: int) -> None:
        super()._expire(name, now_ms)
        self.judge.expired(SharePartitionKey(name[0], bytes.fromhex(name[1]), int(name[2])), now_ms)

    def _fence(self, key: SharePartitionKey) -> None:
        super()._fence(key)
        self.judge.fenced(key)


class ShareBroker(Broker):
    _shares: WatchedShares | None = None

    def config(self, world: Any) -> BrokerConfig:
        return BrokerConfig(
            durability="power",
            given={},
            unimplemented=(),
            of_listeners={},
            group_share_delivery_count_limit=world.most_deliveries,
            group_share_partition_max_record_locks=world.most_locks,
            share_coordinator_snapshot_update_records_per_snapshot=world.updates,
        )

    def make_core(self, world: Any) -> Coordinator:
        settings = GroupSettings(group_share_session_timeout_ms=6_000, group_share_heartbeat_interval_ms=500)
        return Coordinator(settings, world.new_id, LogTopics(self.log, None, None), share_state=self.find_shares)

    def find_shares(self) -> WatchedShares:
        if self._shares is None:
            loop: Any = self.loop
            configs = {
                "share.auto.offset.reset": "earliest",
                "share.record.lock.duration.ms": str(self._world.lock_ms),  # type: ignore[attr-defined]
            }
            self._shares = WatchedShares(
                self._config, self.log, self.flusher, self.waiters, loop, self._world.wall_ms, lambda group_id: configs
            )
            judge: Any = self.judge
            self._shares.judge = judge
        return self._shares


class ShareWorld(transactional.World):
    """Runs one seed: `events` with faults, then without, until every record is finished in every group."""

    broker_type = ShareBroker
    broker: ShareBroker
    judge: ShareJudge  # type: ignore[assignment]

    def _make_judge(self) -> Any:
        random = self.random
        self.most_deliveries = random.choice([2, 3, 5])
        self.most_locks = random.choice([4, 20, 2_000])
        self.updates = random.choice([0, 2, 500])
        self.lock_ms = random.choice([1_000, 3_000])
        self.is_producing = True
        self.faults.level_us = self.faults.sweep_us = None
        return ShareJudge(self)

    def _make_workers(self) -> list[Any]:
        groups = [f"s{number}" for number in range(self.random.choice([1, 1, 2]))]
        count = self.random.choice([2, 3, 4])
        return [ShareMember(self, f"member {number}", groups[number % len(groups)]) for number in range(count)]

    def _make_readers(self) -> list[Any]:
        return [Producer(self)]

    def _prepare(self, broker: Any) -> None:
        topic_id = blake2b(TOPIC.encode(), digest_size=16).digest()
        broker.log.create_topic(TOPIC, self.inputs, {}, topic_id=topic_id)
        broker.log.set_feature_level(SHARE_VERSION, 1)
        broker.log.flush()

    def _run(self) -> Any:
        self._start_broker()
        for client in (*self._clients, *self._reading):
            self.clock.later(self.random.randrange(SECOND), client.start)
        self._schedule_faults()
        while self._events < self._wanted:
            self.step()
        calm_from_us = self.clock.us
        self._calm_down()
        self._wait(self._is_settled, "records are not finished")
        self.judge.check(self.broker)  # type: ignore[arg-type]
        for key, end in self._ends():
            self.judge.check_end(key, end)
        judge = self.judge
        return Outcome(
            self._seed,
            self._events,
            self.clock.us,
            self._number,
            judge.deliveries,
            judge.finished,
            self.clock.us - calm_from_us,
            self._digest.hexdigest(),
        )

    def _calm_down(self) -> None:
        self.note("calm")
        self._in_chaos = self.is_producing = False
        self.faults = Faults(delay_us=60 * MS)
        self.disk.repair()
        for worker, client in zip(self.workers, self._clients, strict=True):
            worker.be_diligent()  # type: ignore[attr-defined]
            client.pause(0)
            # Some stay dead, but not the first of a group.
            if not client.alive and (worker.name in ("member 0", "member 1") or self.happens(0.5)):
                client.start()

    def _ends(self) -> list[tuple[SharePartitionKey, int]]:
        log, topic = self.broker.log, self.broker.log.topics[TOPIC]
        groups = dict.fromkeys(worker.group_id for worker in self.workers)  # type: ignore[attr-defined]
        found = []
        for group_id in groups:
            for index in range(self.inputs):
                partition = log.partition(TOPIC, index)
                assert partition is not None
                found.append((SharePartitionKey(group_id, topic.topic_id, index), partition.high_watermark))
        return found

    def _is_settled(self) -> bool:
        broker = self.broker
        if broker.loop.dead or broker.log.dirty:
            return False
        return all(self._is_finished(key, end) for key, end in self._ends())

    def _is_finished(self, key: SharePartitionKey, end: int) -> bool:
        """Whether the partition waits for the next record. As in Kafka, its start offset may follow with the next change."""
        log = self.broker.log.partition(TOPIC, key.partition)
        assert log is not None
        found = self.broker.find_shares().partition(*key, log)
        if not isinstance(found, SharePartition) or not found.can_acquire() or found.next_fetch_offset() != end:
            return False
        return all(delivery.state in FINISHED for batch in found.in_flight for _, _, delivery in batch.runs())


def run_seed(seed: int, events: int, print_line: Callable[[str], None] | None = None) -> Any:
    """Run one world. A Violation, or any exception of the broker, reports what went wrong."""
    return ShareWorld(seed, events, print_line).run()
