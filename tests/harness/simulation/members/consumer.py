"""A process with a real member and a model application, which polls, processes records and commits."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Generator
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.protocol.errors import ErrorCode
from kgctl.client.consumer.assignors.loading import load_assignors
from kgctl.client.consumer.group.calls import ListenerCall
from kgctl.client.consumer.group.committed import Lookup
from kgctl.client.consumer.group.errors import CommitFailed, FencedInstance, RebalanceInProgress
from kgctl.client.consumer.group.generation import MemberState
from kgctl.client.consumer.group.member import GroupMember
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.consumer.reset_strategy import EARLIEST
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Endpoint
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.settings import NetworkSettings
from kgctl.model.topic_partition import TopicPartition
from tests.harness.simulation.clock import MS, SECOND
from tests.harness.simulation.consumer import Phase
from tests.harness.simulation.members.wire import Wires
from tests.harness.simulation.terms import ensure

if TYPE_CHECKING:
    from tests.harness.simulation.members.world import MemberWorld

REQUEST_TIMEOUT_MS = 8_000
POLL_MS = 500
# How late an application may notice that its consumer is closed: one wait of `close`, and the listener's commit.
CLOSE_SLACK_MS = REQUEST_TIMEOUT_MS + 1_000


class MemberProfile(NamedTuple):
    """How one consumer is configured."""

    group_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    assignors: tuple[str, ...]
    is_cooperative: bool
    mode: str  # auto, sync, async
    protocol: str = "classic"


class Wait(NamedTuple):
    """The application waits: until the condition holds, or for so long."""

    ready: Callable[[], bool]
    us: int


Application = Generator[Wait, None, None]


class Member(RebalanceListener):
    """Has the face of the model consumer for the world: phase, member id, generation, owned partitions."""

    # Errors of the coordinator after which the application polls on.
    refusals: tuple[ErrorCode, ...] = (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.UNRELEASED_INSTANCE_ID)

    def __init__(self, world: MemberWorld, name: str, profile: MemberProfile) -> None:
        self._world = world
        self.name = name
        self.profile = profile
        self.phase = Phase.DEAD
        self.paused_until_us = 0
        self.stalled_until_us = 0
        self._still_until_us = 0  # the latest end of all pauses of this process
        self._incarnation = 0
        self._backlog: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._wants_more = False

    # ---- for the world -----------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        return self.phase not in (Phase.DEAD, Phase.FENCED)

    @property
    def is_stable(self) -> bool:
        return self.alive and self.member.state is MemberState.STABLE and self.member.is_idle

    @property
    def subscribed(self) -> set[str]:
        return {"orders", "more"} if self._wants_more else {"orders"}

    @property
    def member_id(self) -> str:
        return self.member.group_metadata.member_id

    @property
    def generation(self) -> int:
        return self.member.group_metadata.generation_id

    @property
    def owned(self) -> set[TopicPartition]:
        return self._owned

    def start(self) -> None:
        """Start a new process, which knows nothing of the previous one except the instance id."""
        world, profile = self._world, self.profile
        world.note("start", self.name)
        self._incarnation += 1
        self.paused_until_us = self.stalled_until_us = self._still_until_us = 0
        self._backlog.clear()
        self._random = Random(world.random.getrandbits(32))
        settings = NetworkSettings(request_timeout_ms=REQUEST_TIMEOUT_MS, metadata_max_age_ms=30_000)
        self._network = NetworkClient([Endpoint("broker", 9092)], settings, self._random)
        self._subscription = SubscriptionState(EARLIEST)
        self.member = GroupMember(
            self._network,
            self._subscription,
            GroupSettings(
                profile.group_id,
                group_instance_id=profile.instance_id,
                session_timeout_ms=profile.session_timeout_ms,
                heartbeat_interval_ms=profile.session_timeout_ms // 3,
                max_poll_interval_ms=profile.rebalance_timeout_ms,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                auto_commit=profile.mode == "auto",
                auto_commit_interval_ms=1_000,
                protocol=profile.protocol,
            ),
            load_assignors(profile.assignors),
            self._random,
            lambda text: world.note(self.name, text),
        )
        self._wires = Wires(world, self.name, self._network, self._after, self._turn)
        self._owned: set[TopicPartition] = set()
        self._returned: dict[TopicPartition, tuple[int, int]] = {}
        self._lookup: tuple[Lookup, int] | None = None
        self._listener_commits = False
        self._timer = 0
        self._waiting: Wait | None = None
        self._is_turning = self._wants_close = False
        self.phase = Phase.JOINING
        self._subscribe()
        self._application = self._run_application()
        self._after(0, self._continue)

    def crash(self) -> None:
        self._world.note("crash", self.name)
        self._stop(Phase.DEAD)

    def leave(self) -> None:
        """The application closes its consumer instead of the next poll; the process ends when that is done."""
        self._wants_close = True

    def pause(self, us: int) -> None:
        """The process stands still, or only its application."""
        self._world.note("pause", self.name, us)
        until_us = self._world.clock.us + us
        self._still_until_us = max(self._still_until_us, until_us)
        if self._world.happens(0.5):
            self.paused_until_us = until_us
        else:
            self.stalled_until_us = until_us

    def wake(self) -> None:
        self.paused_until_us = self.stalled_until_us = 0

    def change_subscription(self) -> None:
        self._wants_more = not self._wants_more
        if self.alive:
            self._after(0, self._resubscribe)

    # ---- the engine --------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """As kgctl's engine: participants until nothing changes, commands, then whoever waits."""
        if self._is_turning or not self.alive:
            return
        self._is_turning = True
        now_ms = self._world.now_ms
        for _ in range(100):
            before = self._network.changes
            self.member.advance(now_ms)
            self._wires.carry_out(self._network.advance(now_ms))
            if self._network.changes == before:
                break
        else:
            raise AssertionError(f"{self.name} does not come to rest")
        self._is_turning = False
        times = [time for time in (self._network.wake_at_ms(), self.member.wake_at_ms()) if time is not None]
        if times:
            ensure(min(times) > now_ms, f"{self.name} wakes for nothing: {times} at {now_ms}")
            self._timer += 1
            self._after(min(times) * MS - self._world.clock.us, self._time_is_up, self._timer)
        if self._waiting is not None and self._waiting.ready():
            self._after(0, self._continue)

    def _time_is_up(self, timer: int) -> None:
        if timer == self._timer:
            self._turn()

    # ---- the application ---------------------------------------------------------------------------------------------

    def _continue(self, waiting: Wait | None = None) -> None:
        """Run the application until it waits again."""
        if self._waiting is not waiting and not (self._waiting is None or self._waiting.ready()):
            return
        if self._world.clock.us < self.stalled_until_us:
            self._world.clock.at(self.stalled_until_us, self._run, self._incarnation, self._continue, (waiting,))
            return
        self._waiting = None
        try:
            wait = next(self._application)
        except StopIteration:
            return
        if self.alive:
            self._turn()
            self._waiting = wait
            if wait.ready():
                self._after(0, self._continue)
            else:
                self._after(wait.us, self._continue, wait)

    def _run_application(self) -> Application:
        while True:
            self._finish_records()
            if self._wants_close:
                yield from self._close()
                return
            if self.profile.mode != "auto":
                yield from self._commit_processed()
            try:
                yield from self._poll()
            except KgctlError as error:
                if not self._survives(error):
                    return
                yield Wait(lambda: False, self._random.randrange(SECOND, 3 * SECOND))
                continue
            self._take_records()
            yield Wait(lambda: False, self._random.choice([50 * MS, 200 * MS, SECOND, 4 * SECOND]))

    def _poll(self) -> Application:
        """poll(POLL_MS): until a rebalance is over, or records are there."""
        until_us = self._world.clock.us + POLL_MS * MS
        while True:
            self.member.poll(self._world.now_ms)
            yield from self._run_calls()
            self._find_positions()
            if self._subscription.fetchable() or self._world.clock.us >= until_us:
                return
            if not self.member.has_work(self._world.now_ms):
                yield Wait(self._has_news, max(1, until_us - self._world.clock.us))

    def _has_news(self) -> bool:
        return self.member.has_work(self._world.now_ms) or (self._lookup is not None and self._lookup[0].is_done)

    def _run_calls(self) -> Application:
        while (call := self.member.next_call()) is not None:
            self._listener_commits = False
            call.run()
            ensure(call.error is None, f"{call}: {call.error!r}")
            if self._listener_commits:
                yield from self._commit_sync(self._positions())
            self.member.call_done(call, self._world.now_ms)
            if isinstance(call, ListenerCall) and call.kind == "assigned":
                self._took_over()
            if not self.alive:
                return

    def _commit_processed(self) -> Application:
        positions = self._positions()
        if not positions or self._random.random() < 0.5:
            return
        if self.profile.mode == "sync":
            yield from self._commit_sync(positions)
            return
        try:
            self.member.commit(self._subscription.consumed(), self._world.now_ms, lambda offsets, error: None)
        except KgctlError as error:
            self._survives(error)

    def _commit_sync(self, positions: dict[TopicPartition, int]) -> Application:
        offsets = {one: at for one, at in self._subscription.consumed().items() if one in positions}
        now_ms = self._world.now_ms
        try:
            commit = self.member.commit_sync(offsets, now_ms, now_ms + REQUEST_TIMEOUT_MS)
        except KgctlError as error:
            self._survives(error)
            return
        while not commit.is_done:
            yield Wait(lambda: commit.is_done, REQUEST_TIMEOUT_MS * MS)
        known = (CommitFailed, RebalanceInProgress, FencedInstance)
        error = commit.error
        ensure(
            error is None or isinstance(error, known) or error.name == "TIMED_OUT", f"{self.name} commits: {error!r}"
        )

    def _close(self) -> Application:
        deadline_ms = self._world.now_ms + 5_000
        self.member.begin_close(self._world.now_ms, deadline_ms)
        while not self.member.is_closed and self.alive:
            yield from self._run_calls()
            if not self.member.is_closed:
                yield Wait(lambda: self.member.is_closed or self.member.has_calls, SECOND)
        latest_ms = max(deadline_ms, self._still_until_us // MS) + CLOSE_SLACK_MS
        ensure(self._world.now_ms <= latest_ms, f"{self.name} does not close in time")
        self._stop(Phase.DEAD)

    def _survives(self, error: KgctlError) -> bool:
        if isinstance(error, FencedInstance):
            self._stop(Phase.FENCED)
            return False
        is_known = isinstance(error, BrokerError) and error.code in self.refusals
        ensure(is_known, f"{self.name} raises {error!r}")
        return True

    # ---- records -----------------------------------------------------------------------------------------------------

    def _find_positions(self) -> None:
        """Committed offsets of partitions without a position."""
        subscription = self._subscription
        if self._lookup is not None:
            lookup, assignment = self._lookup
            if not lookup.is_done:
                return
            self._lookup = None
            if assignment == subscription.assignment_id and lookup.error is None:
                for partition, found in lookup.offsets.items():
                    state = subscription.find(partition)
                    if state is not None and state.is_initializing:
                        offset = 0 if found is None else found.offset
                        self._world.judge.begins(self, partition, offset, "is assigned")
                        subscription.seek(partition, offset)
        if missing := subscription.initializing():
            now_ms = self._world.now_ms
            lookup = self.member.committed(missing, now_ms, now_ms + REQUEST_TIMEOUT_MS)
            self._lookup = lookup, subscription.assignment_id

    def _take_records(self) -> None:
        """poll returns records: the positions move, and the application processes the records until its next poll."""
        for partition in self._subscription.fetchable():
            state = self._subscription.state(partition)
            assert state.position is not None
            first = state.position.offset
            end = first + self._random.randrange(4)
            if end > first:
                state.advance(state.position._replace(offset=end))
                self._returned[partition] = (first, end)

    def _finish_records(self) -> None:
        for partition, (first, end) in self._returned.items():
            self._world.judge.processed(self, partition, first, end)
        self._returned.clear()

    def _positions(self) -> dict[TopicPartition, int]:
        return {partition: one.offset for partition, one in self._subscription.consumed().items()}

    # ---- the listener ------------------------------------------------------------------------------------------------

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        given = set(partitions)
        self._world.note(self.name, "revoked", sorted(given))
        ensure(self.member.state is not MemberState.UNJOINED, f"{self.name}: {given} are revoked, but they are lost")
        ensure(given <= self._owned, f"{self.name}: {given - self._owned} are revoked, but were never assigned")
        if not self.profile.is_cooperative:
            ensure(given == self._owned, f"{self.name}: {self._owned - given} stay in an eager rebalance")
        self._listener_commits = self.profile.mode != "auto" and bool(given)
        self._owned -= given

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        given = set(partitions)
        self._world.note(self.name, "assigned", sorted(given))
        ensure(not given & self._owned, f"{self.name}: {given & self._owned} are assigned twice")
        if not self.profile.is_cooperative:
            ensure(not self._owned, f"{self.name}: {self._owned} were not revoked before an assignment")
        self._owned |= given

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        given = set(partitions)
        self._world.note(self.name, "lost", sorted(given))
        ensure(self.member.state is not MemberState.STABLE, f"{self.name}: {given} are lost, but it is a member")
        ensure(given <= self._owned, f"{self.name}: {given - self._owned} are lost, but were never assigned")
        self._owned -= given

    def _took_over(self) -> None:
        ensure(
            self._owned == self._subscription.assigned or not self.member.is_idle,
            f"{self.name}: the listener knows {self._owned}, the consumer has {self._subscription.assigned}",
        )
        metadata = self.member.group_metadata
        self._world.judge.took_over(self, metadata.generation_id, metadata.member_id, self._owned)

    # ---- own state ---------------------------------------------------------------------------------------------------

    def _subscribe(self) -> None:
        pattern = "|".join(sorted(self.subscribed))
        if self.profile.mode != "async":
            self._subscription.subscribe(self.subscribed, self)
        elif self.profile.protocol == "consumer":
            self._subscription.subscribe_broker_pattern(pattern, self)
        else:
            self._subscription.subscribe_pattern(re.compile(pattern), self)
        self.member.subscription_changed(self._world.now_ms)

    def _resubscribe(self) -> None:
        if self._subscription.is_auto_assigned and not self.member.is_closed:
            self._subscribe()
            self._turn()

    def _stop(self, phase: Phase) -> None:
        self.phase = phase
        self._incarnation += 1
        self._wires.close()

    def _after(self, us: int, run: Callable[..., None], *arguments: Any) -> None:
        self._world.clock.later(max(0, us), self._run, self._incarnation, run, arguments)

    def _run(self, incarnation: int, run: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """What happens to a process that stands still waits, in order."""
        if incarnation != self._incarnation:
            return
        if self._backlog or self._world.clock.us < self.paused_until_us:
            if not self._backlog:
                self._world.clock.at(self.paused_until_us, self._wake_up, incarnation)
            self._backlog.append((run, arguments))
        else:
            run(*arguments)

    def _wake_up(self, incarnation: int) -> None:
        if incarnation != self._incarnation:
            return
        if self._world.clock.us < self.paused_until_us:
            self._world.clock.at(self.paused_until_us, self._wake_up, incarnation)
            return
        while self._backlog and incarnation == self._incarnation:
            run, arguments = self._backlog.popleft()
            run(*arguments)
