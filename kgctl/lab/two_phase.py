"""Kafka's protocol since 0.9, JoinGroup and SyncGroup: the real coordinator of the broker with the real consumers of the client.

Only the network, the clocks and the applications are simulated. Members find the coordinator, join, assign partitions as the leader, sync, and
send heartbeats by the code that `kgctl.Consumer` runs; the broker's side is the code that the broker runs.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

from broker.light_dataclasses import dataclass
from kgctl.client.consumer import reset_strategy
from kgctl.client.consumer.assignors.loading import load_assignors
from kgctl.client.consumer.group.member import GroupMember
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.net.errors import Unreachable
from kgctl.client.net.steps import Endpoint
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.commands import Close, Command, Connect
from kgctl.client.network.settings import NetworkSettings
from kgctl.lab.coordinator_node import GROUP, HOST, PORT, TOPIC, CoordinatorNode, is_heartbeat
from kgctl.lab.design import Group, LabSettings
from kgctl.lab.ledger import Ledger
from kgctl.lab.world import Process, World

# How long the application processes records before it polls again, and how long poll waits if there is nothing to do.
POLL_MS = (50, 500)
IDLE_MS = 5_000
REQUEST_TIMEOUT_MS = 10_000
MAX_POLL_INTERVAL_MS = 60_000


@dataclass(slots=True, eq=False)
class _Slot:
    """The place of an answer in its connection."""

    is_heartbeat: bool
    answer: bytes | None = None


class TwoPhaseMember:
    """A consumer whose application polls now and then."""

    def __init__(self, group: TwoPhaseGroup, number: int) -> None:
        self._group = group
        self.process = Process(group.world, number)
        self._links: set[int] = set()
        self._opening: set[int] = set()
        self._unanswered: dict[tuple[int, int], deque[_Slot]] = {}
        self._wake_at_ms = -1
        self._polls = 0
        self._is_poll_due = False

    @property
    def owned(self) -> frozenset[int]:
        return frozenset(partition.partition for partition in self._subscription.assigned)

    @property
    def is_fenced(self) -> bool:
        return self._member.group_metadata.member_id not in self._group.node.member_ids

    def start(self) -> None:
        settings = self._group.settings
        source = random.Random(self._group.world.random.random())
        network_settings = NetworkSettings(client_id=self.process.name, request_timeout_ms=REQUEST_TIMEOUT_MS)
        self._network = NetworkClient([Endpoint(HOST, PORT)], network_settings, source)
        self._subscription = SubscriptionState(reset_strategy.EARLIEST)
        self._member = GroupMember(
            self._network,
            self._subscription,
            GroupSettings(
                GROUP,
                session_timeout_ms=settings.session_timeout_ms,
                heartbeat_interval_ms=settings.heartbeat_interval_ms,
                max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                auto_commit=False,
            ),
            load_assignors(self._group.assignors),
            source,
        )
        self._subscription.subscribe([TOPIC])
        self._member.subscription_changed(self._now())
        self._links, self._opening, self._wake_at_ms, self._is_poll_due = set(), set(), -1, False
        self._poll(self._polls)

    def leave(self) -> None:
        self._member.begin_close(self._now(), self._now() + 1_000)
        self._turn()
        self._finish_closing()

    def reconnect(self) -> None:
        """Connections that were open have lost what was sent, so the system reports them as broken. New ones open now."""
        for link in sorted(self._links):
            self._lost(link, "connection reset")
        for link in sorted(self._opening):
            self.process.after(self._group.world.latency(), self._connected, link)

    def _finish_closing(self) -> None:
        self._run_calls()
        self._turn()
        if self._member.is_closed:
            self.process.stop()
            self._group.note(self)
        else:
            self.process.after(10, self._finish_closing)

    # --- the application ---

    def _poll(self, number: int) -> None:
        if number != self._polls or self._member.is_closed:
            return
        self._is_poll_due = False
        self._polls += 1
        for _ in range(20):
            self._member.poll(self._now())
            self._run_calls()
            self._turn()
            if not self._member.has_work(self._now()):
                break
        self.process.after(IDLE_MS, self._poll, self._polls)

    def _poll_soon(self) -> None:
        """There is something to do in poll. An application with partitions calls it after its records, others wait in it."""
        self._polls += 1
        delay_ms = self._group.world.random.randint(*POLL_MS) if self.owned else 0
        self.process.after(delay_ms, self._poll, self._polls)
        self._is_poll_due = True

    def _run_calls(self) -> None:
        while (call := self._member.next_call()) is not None:
            call.run()
            self._member.call_done(call, self._now())
        self._group.note(self)

    # --- the engine ---

    def _now(self) -> int:
        return self._group.world.now_ms

    def _turn(self) -> None:
        """Participants and network, until nothing changes; then the commands."""
        commands: list[Command] = []
        before = -1
        while self._network.changes != before:
            before = self._network.changes
            self._member.advance(self._now())
            commands += self._network.advance(self._now())
        for command in commands:
            self._carry_out(command)
        if not self._is_poll_due and self._member.has_work(self._now()):
            self._poll_soon()
        times = [time for time in (self._network.wake_at_ms(), self._member.wake_at_ms()) if time is not None]
        if times and min(times) != self._wake_at_ms:
            self._wake_at_ms = max(min(times), self._now() + 1)
            self.process.after(self._wake_at_ms - self._now(), self._wake, self._wake_at_ms)

    def _wake(self, at_ms: int) -> None:
        if at_ms == self._wake_at_ms:
            self._wake_at_ms = -1
            self._turn()

    def _carry_out(self, command: Command) -> None:
        if isinstance(command, Connect):
            self._opening.add(command.link)
            self.process.after(command.timeout_ms, self._give_up, command.link)
            if not self.process.is_cut_off:
                self.process.after(self._group.world.latency(), self._connected, command.link)
        elif isinstance(command, Close):
            self._links.discard(command.link)
            self._opening.discard(command.link)
        else:
            frame = b"".join(command.buffers)[4:]
            self.process.send(
                self._arrive, command.link, frame, self.process.incarnation, heartbeat=is_heartbeat(frame)
            )

    def _connected(self, link: int) -> None:
        if link not in self._opening or self.process.is_cut_off:
            return
        self._opening.remove(link)
        self._links.add(link)
        self._network.connected(link, self._now())
        self._turn()

    def _give_up(self, link: int) -> None:
        if link in self._opening:
            self._lost(link, "connection timed out")

    def _lost(self, link: int, reason: str) -> None:
        self._links.discard(link)
        self._opening.discard(link)
        self._network.lost(link, Unreachable(f"{HOST}:{PORT}: {reason}"), self._now())
        self._turn()

    def _arrive(self, link: int, frame: bytes, incarnation: int) -> None:
        """A broker answers the requests of a connection in their order."""
        waiting = self._unanswered.setdefault((incarnation, link), deque())
        slot = _Slot(is_heartbeat(frame))
        waiting.append(slot)

        def reply(answer: bytes) -> None:
            slot.answer = answer
            while waiting and waiting[0].answer is not None:
                done = waiting.popleft()
                self.process.deliver(
                    self._received, link, done.answer, heartbeat=done.is_heartbeat, incarnation=incarnation
                )

        self._group.node.receive(frame, reply)

    def _received(self, link: int, answer: bytes) -> None:
        if link in self._links:
            self._network.received(link, answer, self._now())
            self._turn()


class TwoPhaseGroup(Group):
    """Members of the client library and the coordinator of the broker."""

    def __init__(self, world: World, ledger: Ledger, settings: LabSettings, assignors: Sequence[str]) -> None:
        super().__init__(world, ledger)
        self.settings, self.assignors = settings, assignors
        self.node = CoordinatorNode(world, settings.partitions, self.note_all)
        self._members = [TwoPhaseMember(self, number) for number in range(settings.members)]
        self.members = [*self._members]

    def note_all(self) -> None:
        for member in self._members:
            if member.process.incarnation:
                self.note(member)
