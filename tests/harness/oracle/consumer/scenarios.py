"""Timed scenarios of consumer groups: a script sends the requests of a few clients, of which some miss a deadline.

They are recorded and replayed as walks are. Times are whole units, timeouts end between them; a seed is the number of a scenario.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.harness.oracle.consumer.classic_members import ClassicMember
from tests.harness.oracle.consumer.forms import complete
from tests.harness.oracle.consumer.members import LEAVE, LEAVE_STATIC, Member
from tests.harness.oracle.consumer.names import MEMBERS
from tests.harness.oracle.consumer.player import UNIT_S, WAIT

Fields = dict[str, Any]
Step = dict[str, Any]
ADMIN, HEARTBEAT, GROUP = "admin", "ConsumerGroupHeartbeat", "$G1"
SESSION_MS = round(5.5 * UNIT_S * 1000)
SHORT_MS, MEDIUM_MS, LONG_MS = round(2.5 * UNIT_S * 1000), round(4.5 * UNIT_S * 1000), 300_000
TOPICS = {"$A": 4, "$B": 2}
PROTOCOLS = ("cooperative-sticky", "range")


class Scenario:
    """A scenario in the making, as `Walk`: `next` returns the step to send, `learn` takes its outcome."""

    def __init__(self, seed: int, attempt: int) -> None:
        self.rng = random.Random(f"scenario {seed} attempt {attempt}")
        self.topics = self.counts = dict(TOPICS)
        self.own_topics, self.groups, self.literals = False, [GROUP], len(MEMBERS)
        self.members: list[Member] = []
        self.classic_members: list[ClassicMember] = []
        self.number = 0
        self.state: dict[str, Any] = {}
        self._asked: dict[int, tuple[Step, Member | ClassicMember | None]] = {}
        script = SCENARIOS[seed % len(SCENARIOS)]
        self.name = script.__name__
        self._steps = self._all(script)

    def next(self) -> Step | None:
        return next(self._steps, None)

    def learn(self, replies: list[dict[str, Any]], state: dict[str, Any]) -> None:
        self.state = state
        for reply in replies:
            step, sender = self._asked[reply["to"]]
            if isinstance(sender, Member) and step["api"] == HEARTBEAT:
                sender.learn(step["request"], reply["response"])
            elif isinstance(sender, ClassicMember):
                sender.learn(step["api"], reply["response"])

    def _all(self, script: Callable[[Scenario], Iterator[Step]]) -> Iterator[Step]:
        yield from script(self)
        for member_id, member in sorted(self.state[GROUP]["members"].items()):
            if self.state[GROUP]["type"] == "consumer" and member["type"] == 1:
                yield self.send(ADMIN, HEARTBEAT, 1, {"group_id": GROUP, "member_id": member_id, "member_epoch": LEAVE})
            else:
                one = {"member_id": member_id, "group_instance_id": None}
                yield self.send(ADMIN, "LeaveGroup", 5, {"group_id": GROUP, "members": [one]})
        yield self.send(ADMIN, "DeleteGroups", 2, {"groups_names": [GROUP]})

    # ---- clients

    def consumer(
        self, *, timeout_ms: int = LONG_MS, instance: str | None = None, regex: str | None = None, member_id: str = ""
    ) -> Member:
        number = len(self.members) + len(self.classic_members)
        member = Member(self.rng, number, member_id or MEMBERS[number], GROUP, [timeout_ms])
        member.member_id = member.chosen_id
        member.instance, member.rack, member.assignor, member.version = instance, None, None, 1
        member.topics, member.regex = (None, regex) if regex else (["$A", "$B"], None)
        self.members.append(member)
        return member

    def classic(self, *, timeout_ms: int = LONG_MS, with_id: bool = True) -> ClassicMember:
        """With an id of its own, which only a consumer group accepts."""
        number = len(self.members) + len(self.classic_members)
        member = ClassicMember(self.rng, number, MEMBERS[number], GROUP, PROTOCOLS, (SESSION_MS, [timeout_ms]))
        member.first_id = member.member_id = MEMBERS[number] if with_id else ""
        member.instance, member.version, member.topics, member.counts = None, 2, ["$A", "$B"], self.counts
        self.classic_members.append(member)
        return member

    # ---- steps

    def send(
        self, client: str, api: str, version: int, fields: Fields, sender: Member | ClassicMember | None = None
    ) -> Step:
        self.number += 1
        request = fields if api == WAIT else complete(api, version, fields)
        step = {"t": self.number, "client": client, "api": api, "version": version, "request": request}
        if isinstance(sender, ClassicMember):
            sender.is_waiting = True
        self._asked[self.number] = step, sender
        return step

    def wait(self, units: int = 1) -> Step:
        return self.send(ADMIN, WAIT, 0, {"units": units})

    def beat(self, member: Member, fields: Fields | None = None) -> Step:
        """A heartbeat, or the one that joins; the member gives up and takes over nothing."""
        if fields is None:
            fields = member.beat() if member.epoch > 0 else member.joining()
        return self.send(member.name, HEARTBEAT, 1, fields, member)

    def take(self, member: Member) -> Step:
        """A heartbeat after the member has done what the last one asked it to."""
        if member.target is not None:
            member.owned, member.target = member.target, None
        return self.beat(member)

    def leave(self, member: Member, epoch: int = LEAVE) -> Step:
        return self.beat(member, member.leaving(epoch))

    def join(self, member: ClassicMember) -> Step:
        api, _, fields = member.joining(self.rng)
        return self.send(member.name, api, 9, fields, member)

    def sync(self, member: ClassicMember) -> Step:
        api, _, fields = member.syncing(self.rng)
        return self.send(member.name, api, 5, fields, member)

    def classic_beat(self, member: ClassicMember) -> Step:
        instance = {"group_instance_id": member.instance}
        fields = {"group_id": GROUP, "generation_id": member.generation, "member_id": member.member_id} | instance
        return self.send(member.name, "Heartbeat", 4, fields, member)

    def commit(self, client: str, member_id: str, epoch: int) -> Step:
        row = {
            "partition_index": 0,
            "committed_offset": self.number,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        fields = {
            "group_id": GROUP,
            "generation_id_or_member_epoch": epoch,
            "member_id": member_id,
            "topics": [{"name": "$A", "partitions": [row]}],
        }
        return self.send(client, "OffsetCommit", 9, fields)


Script = Callable[[Scenario], Iterator[Step]]

# ---- rebalance timeouts


def member_that_gives_up_nothing(s: Scenario) -> Iterator[Step]:
    late, other = s.consumer(timeout_ms=SHORT_MS), s.consumer()
    yield s.beat(late)
    yield s.take(late)
    yield s.beat(other)
    yield s.beat(late)  # is asked to give up partitions
    for _ in range(3):
        yield s.wait()
        yield s.beat(late)
        yield s.take(other)
    yield s.take(other)


def member_that_is_silent_while_it_gives_up(s: Scenario) -> Iterator[Step]:
    late, other = s.consumer(timeout_ms=MEDIUM_MS), s.consumer()
    yield s.beat(late)
    yield s.take(late)
    yield s.beat(other)
    yield s.beat(late)
    yield s.wait(4)
    yield s.beat(other)
    yield s.wait()
    yield s.take(other)
    yield s.take(other)
    yield s.commit(late.name, late.member_id, late.epoch)
    yield s.beat(late)


def member_that_gives_up_in_time(s: Scenario) -> Iterator[Step]:
    slow, other = s.consumer(timeout_ms=SHORT_MS), s.consumer()
    yield s.beat(slow)
    yield s.take(slow)
    yield s.beat(other)
    yield s.beat(slow)
    yield s.wait(2)
    yield s.take(slow)
    yield s.take(other)
    for _ in range(2):
        yield s.wait(2)
        yield s.take(slow)
        yield s.take(other)


def next_epoch_while_partitions_are_given_up(s: Scenario) -> Iterator[Step]:
    """The deadline stays that of the first request to give up."""
    late, other, third = s.consumer(timeout_ms=SHORT_MS), s.consumer(), s.consumer()
    yield s.beat(late)
    yield s.take(late)
    yield s.beat(other)
    yield s.beat(late)
    yield s.wait()
    yield s.beat(third)
    yield s.beat(late)
    yield s.wait()
    yield s.beat(late)
    yield s.wait()
    yield s.beat(late)
    yield s.beat(other)
    yield s.beat(third)


def other_timeout_while_partitions_are_given_up(s: Scenario) -> Iterator[Step]:
    late, other = s.consumer(timeout_ms=SHORT_MS), s.consumer()
    yield s.beat(late)
    yield s.take(late)
    yield s.beat(other)
    yield s.beat(late)
    yield s.wait()
    late.timeout_ms = MEDIUM_MS
    yield s.beat(late, late.full())
    yield s.wait(2)
    yield s.beat(late)
    yield s.take(other)
    yield s.wait(2)
    yield s.beat(late)
    yield s.take(other)


def two_rounds_of_giving_up(s: Scenario) -> Iterator[Step]:
    """In the second round the member is late."""
    late, other, third = s.consumer(timeout_ms=SHORT_MS), s.consumer(), s.consumer()
    yield s.beat(late)
    yield s.take(late)
    yield s.beat(other)
    yield s.beat(late)
    yield s.wait(2)
    yield s.take(late)
    yield s.take(other)
    yield s.wait()
    yield s.beat(third)
    yield s.beat(late)
    yield s.take(other)
    yield s.wait()
    yield s.take(other)
    yield s.take(third)
    yield s.beat(late)
    yield s.wait()
    yield s.beat(third)
    yield s.wait()
    yield s.beat(late)
    yield s.take(third)
    yield s.take(other)


def partition_that_another_gives_up_late(s: Scenario) -> Iterator[Step]:
    """The member that waits has a short timeout; the one that gives up a long one. Who waits is not removed."""
    slow, other = s.consumer(), s.consumer(timeout_ms=SHORT_MS)
    yield s.beat(slow)
    yield s.take(slow)
    yield s.beat(other)
    yield s.beat(slow)
    for _ in range(2):
        yield s.wait(2)
        yield s.beat(slow)
        yield s.take(other)
    yield s.take(slow)
    yield s.take(other)


def wrong_partitions_while_giving_up(s: Scenario) -> Iterator[Step]:
    """Heartbeats that give up a part of the partitions, or name others, do not stop the timer."""
    late, other = s.consumer(timeout_ms=SHORT_MS), s.consumer()
    yield s.beat(late)
    yield s.take(late)
    yield s.beat(other)
    yield s.beat(late)
    yield s.wait()
    yield s.beat(late, late.beat() | {"topic_partitions": [{"topic_id": "$A", "partitions": [0, 1, 2, 3]}]})
    yield s.wait(2)
    yield s.beat(late)
    yield s.take(other)


def changed_subscription_while_giving_up(s: Scenario) -> Iterator[Step]:
    late, other = s.consumer(timeout_ms=SHORT_MS), s.consumer()
    yield s.beat(late)
    yield s.take(late)
    yield s.beat(other)
    yield s.beat(late)
    yield s.wait()
    late.topics = ["$B"]
    yield s.beat(late, late.full())
    yield s.wait()
    yield s.beat(other)
    yield s.wait()
    yield s.beat(late)
    yield s.take(other)


# ---- session timeouts


def dynamic_member_that_falls_silent(s: Scenario) -> Iterator[Step]:
    silent, other = s.consumer(), s.consumer()
    yield s.beat(silent)
    yield s.beat(other)
    yield s.take(silent)
    yield s.take(other)
    yield s.wait(3)
    yield s.take(other)
    yield s.wait(2)
    yield s.beat(other)
    yield s.wait()
    yield s.beat(other)
    yield s.take(other)
    yield s.beat(silent)
    yield s.beat(silent)


def all_members_fall_silent(s: Scenario) -> Iterator[Step]:
    first, second = s.consumer(), s.consumer(instance="i1")
    yield s.beat(first)
    yield s.wait()
    yield s.beat(second)
    yield s.wait(5)
    yield s.wait()
    yield s.beat(second)


def silent_member_has_partitions_to_give_up(s: Scenario) -> Iterator[Step]:
    silent, other = s.consumer(), s.consumer()
    yield s.beat(silent)
    yield s.take(silent)
    yield s.beat(other)
    yield s.beat(silent)
    yield s.wait(4)
    yield s.beat(other)
    yield s.wait(2)
    yield s.beat(other)
    yield s.take(other)


def silent_member_waits_for_partitions(s: Scenario) -> Iterator[Step]:
    owner, silent = s.consumer(), s.consumer()
    yield s.beat(owner)
    yield s.take(owner)
    yield s.beat(silent)
    yield s.beat(owner)
    yield s.wait(4)
    yield s.beat(owner)
    yield s.wait(2)
    yield s.take(owner)
    yield s.take(owner)


def member_with_a_regular_expression_falls_silent(s: Scenario) -> Iterator[Step]:
    silent, other = s.consumer(regex="%a.*"), s.consumer()
    yield s.beat(silent)
    yield s.take(silent)
    yield s.beat(other)
    yield s.take(silent)
    yield s.take(other)
    yield s.wait(4)
    yield s.take(other)
    yield s.wait(2)
    yield s.take(other)


def refused_heartbeats_do_not_count(s: Scenario) -> Iterator[Step]:
    fenced, other = s.consumer(), s.consumer()
    yield s.beat(fenced)
    yield s.beat(other)
    yield s.wait(3)
    yield s.beat(fenced, fenced.beat(fenced.epoch + 5))
    yield s.beat(other)
    yield s.wait(3)
    yield s.beat(other)


def commits_and_fetches_do_not_count(s: Scenario) -> Iterator[Step]:
    silent, other = s.consumer(), s.consumer()
    yield s.beat(silent)
    yield s.beat(other)
    yield s.wait(3)
    yield s.commit(silent.name, silent.member_id, silent.epoch)
    yield s.beat(other)
    asked = {"group_id": GROUP, "member_id": silent.member_id, "member_epoch": silent.epoch, "topics": None}
    yield s.send(silent.name, "OffsetFetch", 9, {"require_stable": False, "groups": [asked]})
    yield s.wait(3)
    yield s.commit(silent.name, silent.member_id, silent.epoch)


def member_that_joins_again_before_its_session_ends(s: Scenario) -> Iterator[Step]:
    again, other = s.consumer(), s.consumer()
    yield s.beat(again)
    yield s.beat(other)
    yield s.wait(3)
    yield s.beat(other)
    yield s.beat(again, again.joining())
    yield s.wait(3)
    yield s.beat(other)
    yield s.wait(3)
    yield s.take(other)
    yield s.beat(again)


def member_that_leaves_before_its_session_ends(s: Scenario) -> Iterator[Step]:
    """And joins again: only its new session counts."""
    again, other = s.consumer(), s.consumer()
    yield s.beat(again)
    yield s.beat(other)
    yield s.wait(3)
    yield s.leave(again)
    yield s.beat(other)
    yield s.wait()
    yield s.beat(again)
    yield s.wait(2)
    yield s.take(other)
    yield s.wait(3)
    yield s.take(other)


# ---- static members


def static_member_that_falls_silent(s: Scenario) -> Iterator[Step]:
    silent, other = s.consumer(instance="i1"), s.consumer()
    yield s.beat(silent)
    yield s.beat(other)
    yield s.take(silent)
    yield s.take(other)
    yield s.wait(4)
    yield s.take(other)
    yield s.wait(2)
    yield s.take(other)
    successor = s.consumer(instance="i1")
    yield s.beat(successor)
    yield s.beat(silent)


def static_member_that_does_not_come_back(s: Scenario) -> Iterator[Step]:
    """The session counts from the last heartbeat or from the request to leave: this shows from which."""
    away, other = s.consumer(instance="i1"), s.consumer()
    yield s.beat(away)
    yield s.beat(other)
    yield s.take(away)
    yield s.take(other)
    yield s.wait(2)
    yield s.leave(away, LEAVE_STATIC)
    yield s.take(other)
    yield s.wait(3)
    yield s.take(other)
    yield s.wait()
    yield s.take(other)
    yield s.wait()
    yield s.take(other)
    yield s.wait()
    yield s.take(other)


def static_member_that_comes_back(s: Scenario) -> Iterator[Step]:
    """With another id. The session of the former id does not end that of the new one."""
    away, other = s.consumer(instance="i1"), s.consumer()
    yield s.beat(away)
    yield s.beat(other)
    yield s.take(away)
    yield s.take(other)
    yield s.wait(2)
    yield s.leave(away, LEAVE_STATIC)
    yield s.wait(2)
    successor = s.consumer(instance="i1")
    yield s.beat(successor)
    yield s.take(other)
    yield s.wait(3)
    yield s.take(other)
    yield s.take(successor)
    yield s.wait(4)
    yield s.take(other)
    yield s.wait(2)
    yield s.take(other)


def static_member_that_comes_back_with_its_id(s: Scenario) -> Iterator[Step]:
    away, other = s.consumer(instance="i1"), s.consumer()
    yield s.beat(away)
    yield s.beat(other)
    yield s.wait(3)
    yield s.leave(away, LEAVE_STATIC)
    yield s.take(other)
    yield s.wait()
    yield s.beat(away)
    yield s.wait(3)
    yield s.take(other)
    yield s.wait(2)
    yield s.take(other)
    yield s.wait()
    yield s.take(other)


def static_member_leaves_while_it_gives_up(s: Scenario) -> Iterator[Step]:
    """Whether the rebalance timer of a member that is away removes it."""
    away, other = s.consumer(instance="i1", timeout_ms=SHORT_MS), s.consumer()
    yield s.beat(away)
    yield s.take(away)
    yield s.beat(other)
    yield s.beat(away)
    yield s.wait()
    yield s.leave(away, LEAVE_STATIC)
    yield s.take(other)
    yield s.wait(2)
    yield s.take(other)
    yield s.wait(3)
    yield s.take(other)
    yield s.take(other)


def static_successor_gives_up_late(s: Scenario) -> Iterator[Step]:
    """The successor of a member that had partitions to give up."""
    away, other = s.consumer(instance="i1", timeout_ms=MEDIUM_MS), s.consumer()
    yield s.beat(away)
    yield s.take(away)
    yield s.beat(other)
    yield s.beat(away)
    yield s.leave(away, LEAVE_STATIC)
    yield s.wait()
    successor = s.consumer(instance="i1", timeout_ms=SHORT_MS)
    yield s.beat(successor)
    yield s.take(other)
    yield s.wait(2)
    yield s.beat(successor)
    yield s.take(other)
    yield s.wait(2)
    yield s.beat(successor)
    yield s.take(other)


def epoch_moves_on_while_a_static_member_is_away(s: Scenario) -> Iterator[Step]:
    away, other, third = s.consumer(instance="i1"), s.consumer(), s.consumer()
    yield s.beat(away)
    yield s.beat(other)
    yield s.take(away)
    yield s.take(other)
    yield s.leave(away, LEAVE_STATIC)
    yield s.wait()
    yield s.beat(third)
    yield s.take(other)
    yield s.wait(3)
    yield s.take(third)
    yield s.take(other)
    yield s.wait(2)
    yield s.take(third)
    yield s.take(other)
    yield s.take(third)


# ---- members of both protocols


def _mixed(s: Scenario, newer: Member, *classics: ClassicMember) -> Iterator[Step]:
    """A consumer group with classic members that have synced."""
    yield s.beat(newer)
    yield s.take(newer)
    for classic in classics:
        yield s.join(classic)
        yield s.sync(classic)
        yield s.beat(newer)
        yield s.take(newer)
    yield from _settled(s, newer, *classics)


def _settled(s: Scenario, newer: Member | None, *classics: ClassicMember) -> Iterator[Step]:
    for _ in range(2):
        for classic in classics:
            yield s.classic_beat(classic)
            if not classic.is_joined:
                yield s.join(classic)
                yield s.sync(classic)
        if newer is not None:
            yield s.take(newer)


def classic_member_that_falls_silent(s: Scenario) -> Iterator[Step]:
    newer, classic = s.consumer(), s.classic()
    yield from _mixed(s, newer, classic)
    yield s.wait(4)
    yield s.take(newer)
    yield s.wait(2)
    yield s.take(newer)
    yield s.take(newer)
    yield s.classic_beat(classic)


def classic_member_that_does_not_join_when_asked(s: Scenario) -> Iterator[Step]:
    newer, classic = s.consumer(), s.classic(timeout_ms=SHORT_MS)
    yield from _mixed(s, newer, classic)
    third = s.consumer()
    yield s.beat(third)
    yield s.classic_beat(classic)
    generation = classic.generation
    for _ in range(3):
        yield s.wait()
        classic.generation = generation
        yield s.classic_beat(classic)
        yield s.take(newer)
        yield s.take(third)


def classic_member_that_joins_in_time(s: Scenario) -> Iterator[Step]:
    newer, classic = s.consumer(), s.classic(timeout_ms=SHORT_MS)
    yield from _mixed(s, newer, classic)
    third = s.consumer()
    yield s.beat(third)
    yield s.classic_beat(classic)
    yield s.wait(2)
    yield s.join(classic)
    yield s.take(newer)
    yield s.wait(2)
    yield s.sync(classic)
    yield s.take(newer)
    yield s.take(third)
    yield s.wait(2)
    yield s.classic_beat(classic)


def classic_member_that_does_not_sync(s: Scenario) -> Iterator[Step]:
    newer, classic = s.consumer(), s.classic(timeout_ms=SHORT_MS)
    yield s.beat(newer)
    yield s.take(newer)
    yield s.join(classic)
    yield s.wait(2)
    yield s.classic_beat(classic)
    yield s.take(newer)
    yield s.wait()
    yield s.classic_beat(classic)
    yield s.take(newer)


def classic_member_that_syncs_late_after_a_join(s: Scenario) -> Iterator[Step]:
    """A SyncGroup that is refused because of another epoch: whether the timers stay."""
    newer, classic = s.consumer(), s.classic(timeout_ms=SHORT_MS)
    yield s.beat(newer)
    yield s.take(newer)
    yield s.join(classic)
    third = s.consumer()
    yield s.beat(third)
    yield s.wait()
    yield s.sync(classic)
    yield s.take(newer)
    yield s.wait(2)
    yield s.take(newer)
    yield s.take(third)
    yield s.wait()
    yield s.take(newer)


def classic_group_is_upgraded_and_its_members_fall_silent(s: Scenario) -> Iterator[Step]:
    classic = s.classic(with_id=False)
    yield s.join(classic)
    yield s.join(classic)
    yield s.sync(classic)
    yield s.wait(2)
    newer = s.consumer(member_id=MEMBERS[1])
    yield s.beat(newer)
    yield s.wait(3)
    yield s.take(newer)
    yield s.wait()
    yield s.take(newer)
    yield s.wait(2)
    yield s.take(newer)


def classic_group_is_upgraded_and_its_member_joins(s: Scenario) -> Iterator[Step]:
    classic = s.classic(with_id=False, timeout_ms=MEDIUM_MS)
    yield s.join(classic)
    yield s.join(classic)
    yield s.sync(classic)
    newer = s.consumer(member_id=MEMBERS[1])
    yield s.beat(newer)
    yield s.wait(3)
    yield s.classic_beat(classic)
    yield s.take(newer)
    yield s.wait(3)
    yield s.join(classic)
    yield s.sync(classic)
    yield s.take(newer)
    yield s.wait(3)
    yield s.classic_beat(classic)
    yield s.take(newer)


def last_consumer_falls_silent(s: Scenario) -> Iterator[Step]:
    """The group becomes classic and rebalances; one of its two members joins again."""
    newer, first, second = s.consumer(), s.classic(timeout_ms=SHORT_MS), s.classic(timeout_ms=SHORT_MS)
    yield from _mixed(s, newer, first, second)
    yield s.wait(3)
    yield s.classic_beat(first)
    yield s.classic_beat(second)
    yield s.wait(3)
    yield s.classic_beat(first)
    yield s.join(first)
    yield s.wait(2)
    yield s.wait()
    yield s.sync(first)
    yield s.wait(2)
    yield s.classic_beat(first)


def last_consumer_falls_silent_and_all_join(s: Scenario) -> Iterator[Step]:
    newer, first, second = s.consumer(), s.classic(timeout_ms=MEDIUM_MS), s.classic(timeout_ms=MEDIUM_MS)
    yield from _mixed(s, newer, first, second)
    yield s.wait(3)
    yield s.classic_beat(first)
    yield s.classic_beat(second)
    yield s.wait(3)
    yield s.classic_beat(first)
    yield s.join(first)
    yield s.wait()
    yield s.join(second)
    yield s.sync(first)
    yield s.sync(second)
    yield s.wait(4)
    yield s.classic_beat(first)
    yield s.wait(2)
    yield s.classic_beat(first)


def last_consumer_gives_up_nothing(s: Scenario) -> Iterator[Step]:
    newer, classic = s.consumer(timeout_ms=SHORT_MS), s.classic()
    yield s.beat(newer)
    yield s.take(newer)
    yield s.join(classic)
    yield s.sync(classic)
    yield s.beat(newer)
    yield s.wait(2)
    yield s.classic_beat(classic)
    yield s.beat(newer)
    yield s.wait()
    yield s.classic_beat(classic)
    yield s.join(classic)
    yield s.sync(classic)
    yield s.beat(newer)


def last_consumer_leaves_and_classic_members_fall_silent(s: Scenario) -> Iterator[Step]:
    newer, first, second = s.consumer(), s.classic(), s.classic()
    yield from _mixed(s, newer, first, second)
    yield s.wait(2)
    yield s.classic_beat(first)
    yield s.leave(newer)
    yield s.wait(3)
    yield s.classic_beat(first)
    yield s.wait()
    yield s.classic_beat(first)
    yield s.wait(4)
    yield s.wait()
    yield s.wait()


def classic_member_has_partitions_to_give_up(s: Scenario) -> Iterator[Step]:
    """A classic member that joins, but still owns what it has to give up."""
    classic, newer = s.classic(timeout_ms=SHORT_MS, with_id=False), s.consumer(member_id=MEMBERS[1])
    yield s.join(classic)
    yield s.join(classic)
    yield s.sync(classic)
    yield s.beat(newer)
    yield s.classic_beat(classic)
    yield s.join(classic)
    yield s.sync(classic)
    for _ in range(3):
        yield s.wait()
        yield s.classic_beat(classic)
        yield s.take(newer)
    yield s.take(newer)


SCENARIOS: list[Script] = [
    member_that_gives_up_nothing,
    member_that_is_silent_while_it_gives_up,
    member_that_gives_up_in_time,
    next_epoch_while_partitions_are_given_up,
    other_timeout_while_partitions_are_given_up,
    two_rounds_of_giving_up,
    partition_that_another_gives_up_late,
    wrong_partitions_while_giving_up,
    changed_subscription_while_giving_up,
    dynamic_member_that_falls_silent,
    all_members_fall_silent,
    silent_member_has_partitions_to_give_up,
    silent_member_waits_for_partitions,
    member_with_a_regular_expression_falls_silent,
    refused_heartbeats_do_not_count,
    commits_and_fetches_do_not_count,
    member_that_joins_again_before_its_session_ends,
    member_that_leaves_before_its_session_ends,
    static_member_that_falls_silent,
    static_member_that_does_not_come_back,
    static_member_that_comes_back,
    static_member_that_comes_back_with_its_id,
    static_member_leaves_while_it_gives_up,
    static_successor_gives_up_late,
    epoch_moves_on_while_a_static_member_is_away,
    classic_member_that_falls_silent,
    classic_member_that_does_not_join_when_asked,
    classic_member_that_joins_in_time,
    classic_member_that_does_not_sync,
    classic_member_that_syncs_late_after_a_join,
    classic_group_is_upgraded_and_its_members_fall_silent,
    classic_group_is_upgraded_and_its_member_joins,
    last_consumer_falls_silent,
    last_consumer_falls_silent_and_all_join,
    last_consumer_gives_up_nothing,
    last_consumer_leaves_and_classic_members_fall_silent,
    classic_member_has_partitions_to_give_up,
]
