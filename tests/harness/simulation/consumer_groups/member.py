"""A model of a consumer of KIP-848, after Kafka's ConsumerMembershipManager: heartbeats, reconciliation, fencing, rejoining.

It differs in what it takes over when the calls of its listener have ended. Kafka's client takes over what was assigned when they began.
This one takes over only what its newest assignment has as well, and waits while a heartbeat is unanswered that reports what it owns: the
coordinator understands such a heartbeat to say that the member has given up, or does not want, everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.wire_types import Message
from tests.harness.simulation.clock import MS, SECOND
from tests.harness.simulation.consumer import TOPIC, commit_request
from tests.harness.simulation.network import Link
from tests.harness.simulation.terms import ensure

if TYPE_CHECKING:
    from tests.harness.simulation.consumer_groups.world import ConsumerGroupsWorld

REQUEST_TIMEOUT_US = 5 * SECOND
COMMIT_VERSION = 9
LEAVE, LEAVE_STATIC = -1, -2
Partitions = frozenset[tuple[bytes, int]]
NOTHING: Partitions = frozenset()


class State(Enum):
    DEAD = "dead"
    JOINING = "joining"
    RECONCILING = "reconciling"
    ACKNOWLEDGING = "acknowledging"
    STABLE = "stable"
    STALE = "stale"  # it has left because its application did not poll
    REFUSED = "refused"  # the process has ended with an error; a supervisor starts it again


IN_GROUP = (State.JOINING, State.RECONCILING, State.ACKNOWLEDGING, State.STABLE)
# What a client learns when the coordinator does not have it as a member of this epoch.
FENCING = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
FATAL = (
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.FENCED_INSTANCE_ID,
)


class MemberProfile(NamedTuple):
    """How one consumer is configured, and the version of its client. `stubborn`: how likely it never gives up partitions."""

    group_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    version: int
    assignor: str | None
    rack_id: str | None
    stubborn: float


class Subscription(NamedTuple):
    names: tuple[str, ...]
    regex: str | None


class Local(NamedTuple):
    """An assignment as the client numbers it; None in place of the first one."""

    number: int
    partitions: Partitions


class Pending(NamedTuple):
    took: Callable[[Any], None]
    membership: int


class GroupMember:
    def __init__(
        self, world: ConsumerGroupsWorld, name: str, profile: MemberProfile, subscription: Subscription
    ) -> None:
        self._world = world
        self.name = name
        self.profile = profile
        self.subscription = subscription
        self.state = State.DEAD
        self.member_id, self.epoch = "", 0
        self.owned: Partitions = NOTHING  # what its application uses
        self.claimed: Partitions = NOTHING  # the same with what it has given up, until a heartbeat says so
        self.paused_until_us = 0
        self._incarnation = 0
        self._memberships = 0
        self._link: Link | None = None

    # ---- for the world -----------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        return self.state is not State.DEAD

    @property
    def is_settled(self) -> bool:
        return self.state is State.STABLE and not self._is_reconciling and self._target == self._current

    def start(self) -> None:
        """Start a new process, which knows nothing of the previous one except the instance id."""
        self._world.note("start", self.name)
        self._stop()
        self._pending: dict[int, Pending] = {}
        self.paused_until_us = 0
        # A client of version 0 gets its id from the coordinator.
        self.member_id = self._world.new_id() if self.profile.version else ""
        self._known: frozenset[bytes] = frozenset()  # topics of which it has metadata
        self._is_looking_up = False
        self._beats = 0
        self._interval_us = SECOND
        self._is_awaiting = False
        self._join()
        self._after(self._world.random.randrange(4 * SECOND), self._commit_tick)

    def crash(self) -> None:
        self._world.note("crash", self.name)
        self._stop()

    def pause(self, us: int) -> None:
        """Pause, as in a long garbage collection."""
        self._world.note("pause", self.name, us)
        self.paused_until_us = self._world.clock.us + us

    def wake(self) -> None:
        self.paused_until_us = 0

    def leave(self) -> None:
        """Close the consumer. A static member says that it will come back."""
        if self.state in IN_GROUP and self.member_id:
            self._send_leave()
        self._stop()

    def stall(self) -> None:
        """The application does not poll in time: the client leaves, and joins when it polls again."""
        if self.state in IN_GROUP and self.member_id:
            self._world.note("stall", self.name)
            self._send_leave()
            self._lose_all()
            self.state = State.STALE
            self._after(self._world.random.randrange(100 * MS, 10 * SECOND), self._poll_again)

    def doubt(self) -> None:
        """Say everything in the next heartbeat, as after a lost connection."""
        self._sent = {}

    def change_subscription(self) -> None:
        self.subscription = self._world.draw_subscription(self.profile.version)

    # ---- heartbeats --------------------------------------------------------------------------------------------------

    def _join(self, pause_us: int = 0) -> None:
        self._lose_all()
        self.state = State.JOINING
        self._beat_after(pause_us)

    def _beat_after(self, us: int) -> None:
        self._beats += 1
        self._after(us, self._beat, self._beats)

    def _beat(self, number: int) -> None:
        if number != self._beats or self._is_awaiting or self.state not in IN_GROUP:
            return
        request = self._heartbeat()
        if self.state is State.ACKNOWLEDGING:
            self.state = State.STABLE if self._current == self._target else State.RECONCILING
            self._reconcile()
        if request.topic_partitions is not None:
            self._has_reported = True
            self.claimed = self.owned | (self._current.partitions if self._current is not None else NOTHING)
        self._is_awaiting = True
        self._send(request, self.profile.version, self._answered)

    def _heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        """Everything when it joins or does not know what has arrived; otherwise what has changed."""
        profile, is_full = self.profile, self.state is State.JOINING
        request = ConsumerGroupHeartbeatRequest(
            group_id=profile.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=profile.instance_id,
            rack_id=profile.rack_id if is_full else None,
        )
        names, regex = self.subscription
        if "timeout" not in self._sent:
            request.rebalance_timeout_ms = profile.rebalance_timeout_ms
        if self._sent.get("names") != names:
            request.subscribed_topic_names = list(names)
        if profile.version and self._sent.get("regex", "not sent") != regex:
            request.subscribed_topic_regex = regex or ""
        if "assignor" not in self._sent:
            request.server_assignor = profile.assignor
        if "local" not in self._sent or self._sent["local"] != self._current:
            rows: dict[bytes, list[int]] = {}
            for topic_id, partition in sorted(self._current.partitions if self._current is not None else ()):
                rows.setdefault(topic_id, []).append(partition)
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in rows.items()
            ]
        self._sent = {
            "timeout": True,
            "names": names,
            "regex": regex,
            "assignor": profile.assignor,
            "local": self._current,
        }
        return request

    def _answered(self, response: Any) -> None:
        self._is_awaiting = False
        error = response.error_code
        if error:
            return self._refused(error)
        ensure(
            response.member_epoch >= self.epoch,
            f"{self.name} is in epoch {self.epoch} and learns {response.member_epoch}",
        )
        self._has_reported = False
        self.member_id, self.epoch = response.member_id, response.member_epoch
        self._interval_us = response.heartbeat_interval_ms * MS
        if response.assignment is not None:
            rows = response.assignment.topic_partitions
            given = frozenset((row.topic_id, partition) for row in rows for partition in row.partitions)
            if self._target is None or self._target.partitions != given:
                self._target = Local(0 if self._target is None else self._target.number + 1, given)
            if self._target != self._current:
                self.state = State.RECONCILING
            elif self.state is not State.ACKNOWLEDGING:
                self.state = State.STABLE
        self._beat_after(0 if self.state is State.ACKNOWLEDGING else self._interval_us)
        self._reconcile()
        return None

    def _refused(self, error: int) -> None:
        self._sent = {}
        if error in FENCING:
            # The coordinator may have it in an epoch that it has not learned, until its session expires.
            return self._join(0 if self.epoch else self._world.random.randrange(100 * MS, SECOND))
        ensure(error in FATAL, f"{self.name} receives {ErrorCode(error).name}")
        self._lose_all()
        self.state = State.REFUSED
        return self._after(self._world.random.randrange(SECOND, 3 * SECOND), self.start)

    def _send_leave(self) -> None:
        instance_id = self.profile.instance_id
        is_back_soon = instance_id is not None and not self._world.happens(0.2)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.profile.group_id,
            member_id=self.member_id,
            member_epoch=LEAVE_STATIC if is_back_soon else LEAVE,
            instance_id=instance_id,
        )
        self._send(request, self.profile.version, lambda response: None)

    def _poll_again(self) -> None:
        if self.state is State.STALE:
            self._join()

    # ---- reconciliation ----------------------------------------------------------------------------------------------

    def _reconcile(self) -> None:
        if self.state is not State.RECONCILING or self._is_reconciling or self._target == self._current:
            return
        target = self._target
        assert target is not None
        known = frozenset(place for place in target.partitions if place[0] in self._known)
        if known != target.partitions:
            self._look_up()
        current = self._current
        if current is not None and known == current.partitions:
            if target.number != current.number:
                self._acknowledge(Local(target.number, known))
            return
        self._is_reconciling = True
        self._commit()
        revoked = self.owned - known
        pause_us = self._world.listener_us(self.profile.stubborn) if revoked else 0
        if pause_us is not None:
            self._after(pause_us, self._revoked, self._memberships, Local(target.number, known), revoked)

    def _revoked(self, membership: int, resolved: Local, revoked: Partitions) -> None:
        if membership == self._memberships:
            self.owned -= revoked
            pause_us = self._world.listener_us(0.0)
            assert pause_us is not None
            self._after(pause_us, self._assigned, membership, resolved)

    def _assigned(self, membership: int, resolved: Local) -> None:
        if membership != self._memberships:
            return
        if self._has_reported:
            self._after(20 * MS, self._assigned, membership, resolved)
            return
        assert self._target is not None
        added = (resolved.partitions - self.owned) & self._target.partitions
        self._world.judge.gains(self, added)
        self.owned |= added
        self.claimed |= added
        self._is_reconciling = False
        self._acknowledge(Local(resolved.number, self.owned))

    def _acknowledge(self, local: Local) -> None:
        self._current = local
        self.state = State.ACKNOWLEDGING
        self._beat_after(0)

    def _look_up(self) -> None:
        """Ask for the metadata of topics; those that have been deleted are not found."""
        if not self._is_looking_up:
            self._is_looking_up = True
            self._after(self._world.random.choice([20 * MS, 20 * MS, SECOND]), self._looked_up)

    def _looked_up(self) -> None:
        self._is_looking_up = False
        found = (self._world.catalog.topic_id(name) for name in self._world.catalog)
        before, self._known = self._known, self._known | frozenset(filter(None, found))
        if self._known != before:
            self._reconcile()

    # ---- commits -----------------------------------------------------------------------------------------------------

    def _commit_tick(self) -> None:
        self._after(self._world.random.randrange(100 * MS, 5 * SECOND), self._commit_tick)
        self._commit()

    def _commit(self) -> None:
        world, topic_id = self._world, self._world.catalog.topic_id(TOPIC)
        owned = sorted(partition for found, partition in self.owned if found == topic_id)
        if owned and self.epoch > 0:
            chosen = world.random.sample(owned, world.random.randrange(len(owned)) + 1)
            request = commit_request(self.profile.group_id, {p: world.next_offset() for p in chosen})
            request.generation_id_or_member_epoch, request.member_id = self.epoch, self.member_id
            request.group_instance_id = self.profile.instance_id
            self._send(request, COMMIT_VERSION, lambda response: None)

    # ---- connections -------------------------------------------------------------------------------------------------

    def _send(self, request: Message, version: int, took: Callable[[Any], None]) -> None:
        if self._link is None:
            if self._world.broker.loop.dead:
                return self._disconnected()
            self._link = self._world.connect(self)
        link = self._link
        correlation = link.send(request, version)
        self._pending[correlation] = Pending(took, self._memberships)
        return self._after(REQUEST_TIMEOUT_US, self._timed_out, link, correlation)

    def _timed_out(self, link: Link, correlation: int) -> None:
        if link is self._link and correlation in self._pending:
            link.close()
            self._lost(link)

    def received(self, link: Link, correlation: int, response: Any) -> None:
        self._after(0, self._take, link, correlation, response)

    def disconnected(self, link: Link) -> None:
        self._after(0, self._lost, link)

    def _take(self, link: Link, correlation: int, response: Any) -> None:
        if link is not self._link or correlation not in self._pending:
            return
        pending = self._pending.pop(correlation)
        if pending.membership == self._memberships:
            pending.took(response)

    def _lost(self, link: Link) -> None:
        if link is self._link:
            self._link = None
            self._disconnected()

    def _disconnected(self) -> None:
        """Whether the last heartbeat has arrived is not known, so the next one says everything."""
        self._pending.clear()
        self._sent, self._is_awaiting = {}, False
        self._beat_after(self._world.random.randrange(50 * MS, SECOND))

    # ---- own state ---------------------------------------------------------------------------------------------------

    def _lose_all(self) -> None:
        """The membership has ended, and with it the right to use partitions."""
        self._memberships += 1
        self.epoch = 0
        self.owned = self.claimed = NOTHING
        self._target: Local | None = None
        self._current: Local | None = None
        self._sent: dict[str, Any] = {}
        self._has_reported = False  # a heartbeat reports what it owns, and it has not had an answer since
        self._is_reconciling = self._is_awaiting = False

    def _stop(self) -> None:
        self.state = State.DEAD
        self._incarnation += 1
        self._lose_all()
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
