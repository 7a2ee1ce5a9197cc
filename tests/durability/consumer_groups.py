"""kill -9 under a consumer group (KIP-848): epochs never go back, targets never change, commits stay, partitions have one owner.

The members are driven from this process, so that it knows what each of them has learned: in turns, all send a heartbeat and a commit
on connections of their own, then read the answers. The kill comes at any time in between.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.durability.parts import Violation
from tests.durability.victim import Victim
from tests.harness.requests import create_topic
from tests.harness.wire_client import ConnectionClosed, WireClient

GROUP, TOPICS = "moving", {"load": 8, "more": 3}
SESSION_S = 2.0
CONFIG = {
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.session.timeout.ms": str(round(SESSION_S * 1000)),
}
MOST_MEMBERS = 8
LEAVE, LEAVE_STATIC = -1, -2
HEARTBEAT_VERSION, COMMIT_VERSION, OFFSET_FETCH_VERSION = 1, 9, 8
SETTLE_WITHIN_S = 60.0
REJOINING = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNRELEASED_INSTANCE_ID)
REFUSED_COMMITS = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH)
Place = tuple[bytes, int]
LOST = (OSError, ConnectionClosed)


class Member:
    """A member of the group; it gives up and takes over partitions at once."""

    def __init__(self, name: str, instance_id: str | None, topics: list[str]) -> None:
        self.name, self.instance_id, self.topics = name, instance_id, topics
        self.client: WireClient | None = None
        self.epoch = 0
        self.owned: frozenset[Place] = frozenset()
        self.claimed: frozenset[Place] = frozenset()  # with what it has given up and not said yet
        self.is_unsure = True  # the last answer may be lost, so the next heartbeat says everything
        self.heard_s = time.monotonic()  # when the last heartbeat was sent that was answered

    @property
    def is_present(self) -> bool:
        """False if the coordinator may have removed it because of time."""
        return time.monotonic() - self.heard_s < SESSION_S * 0.9

    def heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.name, member_epoch=self.epoch, instance_id=self.instance_id
        )
        if self.is_unsure or self.epoch == 0:
            request.rebalance_timeout_ms = 30_000
            request.subscribed_topic_names = self.topics
        if self.is_unsure or self.epoch == 0 or self.claimed != self.owned:
            rows: dict[bytes, list[int]] = {}
            for topic_id, partition in sorted(self.owned):
                rows.setdefault(topic_id, []).append(partition)
            part = ConsumerGroupHeartbeatRequest.TopicPartitions
            request.topic_partitions = [part(topic_id=topic_id, partitions=found) for topic_id, found in rows.items()]
            self.claimed = self.owned
        return request

    def lose_all(self) -> None:
        self.epoch, self.is_unsure = 0, True
        self.owned = self.claimed = frozenset()


class Run:
    """One run in its own directory, which the caller removes."""

    def __init__(self, directory: Path, seed: int, victim: Victim, report: Callable[[str], None]) -> None:
        self._victim, self._report, self._random = victim, report, Random(seed)
        self.members: list[Member] = []
        self.learned: dict[str, int] = {}  # the highest epoch by member id
        self.targets: dict[tuple[int, str], frozenset[Place]] = {}  # by epoch and instance or member id
        self._known: dict[int, int] = {}  # the committed offset of each partition, as far as it is known
        self._possible: dict[int, set[int]] = {}  # offsets of commits whose answer is lost
        self._numbers = self._names = 0
        self.figures: Counter[str] = Counter()

    def run(self, rounds: int) -> dict[str, object]:
        try:
            self._start()
            for number in range(1, rounds + 1):
                self._round(number)
            self._settle()
        except AssertionError as error:
            raise Violation(f"round {self.figures['rounds'] + 1}: {error}") from error
        finally:
            for member in self.members:
                self._hang_up(member)
            self._victim.kill()
        return {**self.figures, "group epoch": max(self.learned.values(), default=0)}

    def _start(self) -> None:
        self._victim.spawn()
        self._victim.wait_until_ready()
        with self._victim.client() as client:
            for name, partitions in TOPICS.items():
                create_topic(client, name, partitions)
            rows = client.ask(MetadataRequest(topics=None), 12).topics
            self._ids = {topic.name: topic.topic_id for topic in rows if topic.name in TOPICS}
        self._add()

    def _round(self, number: int) -> None:
        seconds = self._random.uniform(0.05, 0.6)
        ended = threading.Event()
        killer = threading.Timer(seconds, lambda: (ended.set(), self._victim.kill()))
        killer.start()
        epoch = max(self.learned.values(), default=0)
        try:
            with self._victim.client() as observer:
                while True:
                    self._change()
                    self._turn()
                    if self._random.random() < 0.3:
                        self._describe(observer)
        except LOST as error:
            if not ended.is_set():
                raise AssertionError(f"a connection ends: {error!r}") from error
        for member in self.members:
            self._hang_up(member)
        killer.join()
        self._victim.spawn()
        took_s = self._victim.wait_until_ready()
        with self._victim.client() as client:
            self._describe(client, is_restarted=True)
            self._check_commits(client)
        self.figures["rounds"] = number
        learned = max(self.learned.values(), default=0)
        self._report(
            f"round {number}: killed after {seconds:.2f} s, serving after {took_s * 1000:.0f} ms, epochs {epoch} to {learned},"
            f" {len(self.members)} members"
        )

    # -- what members do

    def _change(self) -> None:
        random, kind = self._random, self._random.random()
        if (kind < 0.15 and len(self.members) < MOST_MEMBERS) or not self.members:
            self._add()
        elif kind < 0.25 and len(self.members) > 2:
            self._remove(random.choice(self.members))
        elif kind < 0.35:
            member = random.choice(self.members)
            member.topics = random.choice([["load"], ["load", "more"]])
            member.is_unsure = True

    def _add(self) -> None:
        self._names += 1
        taken = {member.instance_id for member in self.members}
        instance_id = self._random.choice([None, None, "i1", "i2"])
        topics = self._random.choice([["load"], ["load", "more"]])
        self.members.append(Member(f"m{self._names}", None if instance_id in taken else instance_id, topics))

    def _remove(self, member: Member) -> None:
        """It leaves, for ever or for a while, or its process ends without a word."""
        self.members.remove(member)
        client, member.client = member.client, None
        if client is None:
            return
        with client:
            if member.epoch and self._random.random() < 0.7:
                epoch = LEAVE if member.instance_id is None else LEAVE_STATIC
                leaving = ConsumerGroupHeartbeatRequest(
                    group_id=GROUP, member_id=member.name, member_epoch=epoch, instance_id=member.instance_id
                )
                client.ask(leaving, HEARTBEAT_VERSION)

    def _hang_up(self, member: Member) -> None:
        if member.client is not None:
            member.client.close()
            member.client = None

    def _turn(self) -> None:
        """All members send what they have to send, then read their answers. Raises an OSError or ConnectionClosed."""
        sent: list[tuple[Member, WireClient, dict[int, int], float]] = []
        for member in self.members:
            if member.client is None:
                member.client, member.is_unsure = self._victim.client(), True
            sent_s, commit = time.monotonic(), self._commit(member, member.client)
            member.client.send(member.heartbeat(), HEARTBEAT_VERSION)
            sent.append((member, member.client, commit, sent_s))
        for member, client, commit, sent_s in sent:
            if commit:
                self._committed(commit, client.receive())
            self._answered(member, client.receive(), sent_s)

    def _commit(self, member: Member, client: WireClient) -> dict[int, int]:
        owned = [partition for topic_id, partition in member.owned if topic_id == self._ids["load"]]
        if not owned or not member.epoch or self._random.random() < 0.5:
            return {}
        chosen = self._random.sample(sorted(owned), self._random.randrange(len(owned)) + 1)
        self._numbers += 1
        commit = dict.fromkeys(chosen, self._numbers)
        for partition in commit:
            self._possible.setdefault(partition, set()).add(self._numbers)
        row = OffsetCommitRequest.Partition
        rows = [row(partition_index=p, committed_offset=n, committed_metadata=str(n)) for p, n in commit.items()]
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=member.epoch,
            member_id=member.name,
            group_instance_id=member.instance_id,
            topics=[OffsetCommitRequest.Topic(name="load", partitions=rows)],
        )
        client.send(request, COMMIT_VERSION)
        return commit

    def _committed(self, commit: dict[int, int], response: Any) -> None:
        for row in response.topics[0].partitions:
            number = commit[row.partition_index]
            self._possible[row.partition_index].discard(number)
            if row.error_code:
                assert row.error_code in REFUSED_COMMITS, f"a commit gets {ErrorCode(row.error_code).name}"
                self.figures["commits refused"] += 1
            else:
                self._known[row.partition_index] = max(number, self._known.get(row.partition_index, 0))
                self.figures["commits"] += 1

    def _answered(self, member: Member, response: Any, sent_s: float) -> None:
        self.figures["heartbeats"] += 1
        if response.error_code:
            assert response.error_code in REJOINING, f"{member.name} gets {ErrorCode(response.error_code).name}"
            return member.lose_all()
        epoch, known = response.member_epoch, self.learned.get(member.name, 0)
        assert epoch >= known, f"{member.name} learns epoch {epoch} after {known}"
        self.learned[member.name] = member.epoch = epoch
        member.is_unsure, member.heard_s = False, sent_s
        if response.assignment is not None:
            rows = response.assignment.topic_partitions
            given = frozenset((row.topic_id, partition) for row in rows for partition in row.partitions)
            for other in self.members:
                both = (given - member.owned) & other.claimed if other is not member and other.is_present else None
                assert not both, f"{member.name} gets {both}, which {other.name} has not given up"
            member.claimed |= given
            member.owned = given
        return None

    # -- what must hold

    def _describe(self, client: WireClient, *, is_restarted: bool = False) -> str:
        """Compare the group with what is known. Returns its state."""
        (group,) = client.ask(ConsumerGroupDescribeRequest(group_ids=[GROUP])).groups
        if not self.learned:
            return ""
        assert not group.error_code, f"the group gets {ErrorCode(group.error_code).name}"
        newest = max(self.learned.values())
        assert group.group_epoch >= newest, f"the group epoch is {group.group_epoch}, and {newest} is known"
        for found in group.members:
            known = self.learned.get(found.member_id, 0)
            # A static member that has left for a while has epoch -2.
            assert found.member_epoch >= known or found.member_epoch == LEAVE_STATIC, (
                f"{found.member_id} is in epoch {found.member_epoch}, and {known} is known"
            )
            places = frozenset(
                (row.topic_id, partition)
                for row in found.target_assignment.topic_partitions
                for partition in row.partitions
            )
            key = group.assignment_epoch, found.instance_id or found.member_id
            assert self.targets.setdefault(key, places) == places, f"the target of {key} is another one"
        self.figures["targets compared after a restart"] += len(group.members) if is_restarted else 0
        return str(group.group_state)

    def _check_commits(self, client: WireClient) -> None:
        asked = [OffsetFetchRequest.Group(group_id=GROUP, topics=None)]
        (group,) = client.ask(OffsetFetchRequest(groups=asked), OFFSET_FETCH_VERSION).groups
        rows = [row for topic in group.topics if topic.name == "load" for row in topic.partitions]
        found = {row.partition_index: row.committed_offset for row in rows}
        for row in rows:
            assert row.metadata == str(row.committed_offset), f"{row.committed_offset} has the metadata {row.metadata}"
        for partition in range(TOPICS["load"]):
            offset, known = found.get(partition, 0), self._known.get(partition, 0)
            possible = {known, *(number for number in self._possible.get(partition, ()) if number > known)}
            assert offset in possible, f"{offset} is committed for partition {partition}, not {sorted(possible)}"
            self._known[partition] = offset
        self._possible.clear()

    def _settle(self) -> None:
        """Without kills, the group becomes Stable, and each partition has one owner."""
        deadline = time.monotonic() + SETTLE_WITHIN_S
        wanted: set[Place] = set()
        owned: list[Place] = []
        with self._victim.client() as client:
            while True:
                self._turn()
                state = self._describe(client)
                subscribed = {topic for member in self.members for topic in member.topics}
                wanted = {(self._ids[topic], number) for topic in subscribed for number in range(TOPICS[topic])}
                owned = [place for member in self.members for place in member.owned]
                if state == "Stable" and len(owned) == len(wanted) and {*owned} == wanted:
                    return
                assert time.monotonic() < deadline, f"{state}, owned are {owned}"


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    return Run(directory, seed, Victim(directory, durability="power", config=CONFIG), report).run(rounds)
