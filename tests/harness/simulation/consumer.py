"""A model of a consumer: joins, leads or follows, syncs, heartbeats and commits; it also pauses, crashes and restarts."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from struct import pack
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.wire_types import Message
from tests.harness.simulation.clock import MS, SECOND
from tests.harness.simulation.network import Link

if TYPE_CHECKING:
    from tests.harness.simulation.world import World

TOPIC = "orders"
REQUEST_TIMEOUT_US = 8 * SECOND
PROTOCOL = "range"


class Phase(Enum):
    DEAD = "dead"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"
    REFUSED = "refused"  # the group is full; it retries
    FENCED = "fenced"  # another process has its instance id; it stops


class Profile(NamedTuple):
    """How one consumer is configured, and the version of its client."""

    group_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    join: int
    sync: int
    heartbeat: int
    commit: int
    leave: int


class Pending(NamedTuple):
    """A request in flight, and the identity of the member when it was sent."""

    took: Callable[[Any], None]
    member_id: str
    generation: int


class Consumer:
    def __init__(self, world: World, name: str, profile: Profile) -> None:
        self._world = world
        self.name = name
        self.profile = profile
        self.phase = Phase.DEAD
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[int, ...] = ()
        self.collected_as = ""  # the member id under which it last received an assignment
        self.paused_until_us = 0
        self._incarnation = 0
        self._attempts = 0
        self._subscription = 0
        self._link: Link | None = None
        self._pending: dict[int, Pending] = {}
        self._beating = False

    # ---- for the world -----------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        return self.phase not in (Phase.DEAD, Phase.FENCED)

    def start(self) -> None:
        """Start a new process, which knows nothing of the previous one except the instance id."""
        self._incarnation += 1
        self._forget()
        self._pending, self._link, self._beating, self.paused_until_us = {}, None, False, 0
        self._world.note("start", self.name)
        self._join()
        self._after(self._heartbeat_us(), self._heartbeat)
        self._after(self._world.random.randrange(4 * SECOND), self._commit_tick)

    def crash(self) -> None:
        self._world.note("crash", self.name)
        self._stop(Phase.DEAD)

    def pause(self, us: int) -> None:
        """Pause, as in a long garbage collection; then commit before anything else, as if no time had passed."""
        self._world.note("pause", self.name, us)
        self.paused_until_us = self._world.clock.us + us
        self._after(us, self._commit)

    def wake(self) -> None:
        self.paused_until_us = 0

    def leave(self) -> None:
        if self.phase in (Phase.STABLE, Phase.JOINING) and self.member_id:
            version, own = (
                self.profile.leave,
                LeaveGroupRequest.Member(member_id=self.member_id, reason="shutting down"),
            )
            request = LeaveGroupRequest(group_id=self.profile.group_id)
            if version >= 3:
                request.members = [own]
            else:
                request.member_id = self.member_id
            self._send(request, version, lambda response: None, REQUEST_TIMEOUT_US)
        self._stop(Phase.DEAD)

    def change_subscription(self) -> None:
        self._subscription += 1
        if self.phase is Phase.STABLE:
            self._join()

    # ---- requests ------------------------------------------------------------------------------------------------

    def _join(self) -> None:
        self.phase = Phase.JOINING
        self._attempts += 1
        profile = self.profile
        request = JoinGroupRequest(
            group_id=profile.group_id,
            session_timeout_ms=profile.session_timeout_ms,
            rebalance_timeout_ms=profile.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=profile.instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequest.Protocol(name=PROTOCOL, metadata=subscription(self._subscription)),
                JoinGroupRequest.Protocol(name="roundrobin", metadata=subscription(self._subscription)),
            ],
        )
        timeout_ms = max(profile.rebalance_timeout_ms, profile.session_timeout_ms) + 5_000
        self._send(request, profile.join, self._joined, timeout_ms * MS)

    def _joined(self, response: Any) -> None:
        error = response.error_code
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return self._join()
        if error:
            return self._refused(error)
        self.owned = ()
        self.member_id, self.generation = response.member_id, response.generation_id
        self.phase = Phase.SYNCING
        plan: dict[str, bytes] = {}
        if response.leader == response.member_id and not response.skip_assignment:
            plan = self._world.judge.plan(self, [member.member_id for member in response.members])
        return self._sync(plan)

    def _sync(self, plan: dict[str, bytes]) -> None:
        profile = self.profile
        request = SyncGroupRequest(
            group_id=profile.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=profile.instance_id,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=[SyncGroupRequest.Assignment(member_id=m, assignment=a) for m, a in plan.items()],
        )
        timeout_ms = max(profile.rebalance_timeout_ms, profile.session_timeout_ms) + 5_000
        self._send(request, profile.sync, self._synced, timeout_ms * MS)

    def _synced(self, response: Any) -> None:
        if response.error_code:
            return self._refused(response.error_code)
        self.owned = self._world.judge.collected(self, response.assignment)
        self.collected_as = self.member_id
        self.phase = Phase.STABLE
        return None

    def _heartbeat(self) -> None:
        self._after(self._heartbeat_us(), self._heartbeat)
        if self.phase in (Phase.STABLE, Phase.SYNCING) and not self._beating:
            profile = self.profile
            request = HeartbeatRequest(
                group_id=profile.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=profile.instance_id,
            )
            self._beating = True
            self._send(request, profile.heartbeat, self._heartbeat_answered, REQUEST_TIMEOUT_US)

    def _heartbeat_answered(self, response: Any) -> None:
        self._beating = False
        if response.error_code and self.phase in (Phase.STABLE, Phase.SYNCING):
            self._refused(response.error_code)

    def _commit_tick(self) -> None:
        self._after(self._world.random.randrange(100 * MS, 5 * SECOND), self._commit_tick)
        self._commit()

    def _commit(self) -> None:
        """Commit, even while joining again: until it learns of the next generation, the consumer believes it owns its partitions."""
        if self.owned:
            world, profile = self._world, self.profile
            chosen = world.random.sample(self.owned, world.random.randrange(len(self.owned)) + 1)
            request = commit_request(profile.group_id, {p: world.next_offset() for p in chosen})
            request.generation_id_or_member_epoch, request.member_id = self.generation, self.member_id
            request.group_instance_id = profile.instance_id
            self._send(request, profile.commit, self._committed, REQUEST_TIMEOUT_US)

    def _committed(self, response: Any) -> None:
        error = response.topics[0].partitions[0].error_code
        if error and self.phase is Phase.STABLE:
            self._refused(error)

    def _refused(self, error: int) -> None:
        if error == ErrorCode.FENCED_INSTANCE_ID:
            self._world.judge.fenced(self)
            return self._stop(Phase.FENCED)
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            self._forget()
            return self._join()
        if error in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            return self._join()
        assert error == ErrorCode.GROUP_MAX_SIZE_REACHED, f"{self.name} received {ErrorCode(error).name}"
        self._forget()
        self.phase = Phase.REFUSED
        return self._after(self._world.random.randrange(SECOND, 3 * SECOND), self._join)

    # ---- connections ---------------------------------------------------------------------------------------------

    def _send(self, request: Message, version: int, took: Callable[[Any], None], timeout_us: int) -> None:
        if self._link is None:
            if self._world.broker.loop.dead:
                return self._retry()
            self._link = Link(self._world, self)
        link = self._link
        correlation = link.send(request, version)
        self._pending[correlation] = Pending(took, self.member_id, self.generation)
        return self._after(timeout_us, self._timed_out, link, correlation)

    def _timed_out(self, link: Link, correlation: int) -> None:
        if link is self._link and correlation in self._pending:
            link.close()
            self._reconnect(link)

    def received(self, link: Link, correlation: int, response: Any) -> None:
        self._after(0, self._take, link, correlation, response)

    def disconnected(self, link: Link) -> None:
        self._after(0, self._reconnect, link)

    def _take(self, link: Link, correlation: int, response: Any) -> None:
        if link is not self._link or correlation not in self._pending:
            return
        pending = self._pending.pop(correlation)
        if (pending.member_id, pending.generation) == (self.member_id, self.generation):
            pending.took(response)
        elif pending.took == self._heartbeat_answered:
            # The response to a previous process says nothing about this one.
            self._beating = False

    def _reconnect(self, link: Link) -> None:
        if link is self._link:
            self._link = None
            self._retry()

    def _retry(self) -> None:
        self._pending.clear()
        self._beating = False
        if self.phase in (Phase.JOINING, Phase.SYNCING):
            self._after(self._world.random.randrange(50 * MS, SECOND), self._join_again, self._attempts)

    def _join_again(self, attempts: int) -> None:
        if self.phase in (Phase.JOINING, Phase.SYNCING) and attempts == self._attempts:
            self._join()

    # ---- own state ---------------------------------------------------------------------------------------------------

    def _heartbeat_us(self) -> int:
        return min(3_000, self.profile.session_timeout_ms // 3) * MS

    def _forget(self) -> None:
        self.member_id, self.generation, self.owned = "", -1, ()

    def _stop(self, phase: Phase) -> None:
        self.phase = phase
        self._incarnation += 1
        self._forget()
        if self._link is not None:
            self._link.close()
            self._link = None

    def _after(self, us: int, run: Callable[..., None], *arguments: Any) -> None:
        self._world.clock.later(us, self._run, self._incarnation, run, arguments)

    def _run(self, incarnation: int, run: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if incarnation != self._incarnation:
            return
        if self._world.clock.us < self.paused_until_us:
            self._world.clock.at(self.paused_until_us, self._run, incarnation, run, arguments)
        else:
            run(*arguments)


def subscription(number: int) -> bytes:
    """The metadata of a consumer of TOPIC, different for each number."""
    topic = TOPIC.encode()
    return pack(">hih", 0, 1, len(topic)) + topic + pack(">ii", 4, number)


def commit_request(group_id: str, offsets: dict[int, int]) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequest.Partition(partition_index=partition, committed_offset=offset, committed_metadata="")
        for partition, offset in offsets.items()
    ]
    return OffsetCommitRequest(
        group_id=group_id, member_id="", topics=[OffsetCommitRequest.Topic(name=TOPIC, partitions=partitions)]
    )
