"""The first plan for Kafka 0.9: a broker coordinates the group and assigns the partitions itself.

Members send heartbeats to the coordinator. When the group changes, it answers them with "join again"; a member then gives up
its partitions and joins, and the coordinator answers all of them at once, with the assignment, when every member has
joined or has been silent for the session timeout. Every change of the strategy is a change of the brokers.
"""

from __future__ import annotations

from collections.abc import Callable

from kgctl.lab.design import Group, LabSettings, range_of
from kgctl.lab.ledger import Ledger
from kgctl.lab.world import Process, World

POLL_MS = (50, 500)
REQUEST_TIMEOUT_MS = 10_000

Reply = Callable[[int, int, frozenset[int]], None]  # member id, generation, partitions


class Coordinator:
    """The broker's side of one group."""

    def __init__(self, world: World, settings: LabSettings, changed: Callable[[], None]) -> None:
        self.world, self._settings, self._changed = world, settings, changed
        self.heard_ms: dict[int, int] = {}
        """The members, and when each was heard last."""
        self.generation = 0
        self.is_rebalancing = False
        self._joined: dict[int, Reply] = {}
        self._last_id = 0

    def join(self, member_id: int, reply: Reply) -> None:
        """The reply comes when all members have joined. Member id 0: a new member."""
        if member_id not in self.heard_ms:
            self._last_id += 1
            member_id = self._last_id
            self.world.after(self._settings.session_timeout_ms, self._check, member_id)
        self.heard_ms[member_id] = self.world.now_ms
        self._joined[member_id] = reply
        self.is_rebalancing = True
        self._complete()

    def heartbeat(self, member_id: int, generation: int) -> str:
        """Whether the member is "known", has to "join" again, or is "unknown"."""
        if member_id not in self.heard_ms:
            return "unknown"
        self.heard_ms[member_id] = self.world.now_ms
        return "join" if self.is_rebalancing or generation != self.generation else "known"

    def leave(self, member_id: int) -> None:
        if self.heard_ms.pop(member_id, None) is not None:
            self._joined.pop(member_id, None)
            self.is_rebalancing = True
            self._complete()

    def _check(self, member_id: int) -> None:
        if member_id not in self.heard_ms:
            return
        left = self.heard_ms[member_id] + self._settings.session_timeout_ms - self.world.now_ms
        if left <= 0 and member_id not in self._joined:
            self.leave(member_id)
        else:
            self.world.after(max(left, 1_000), self._check, member_id)

    def _complete(self) -> None:
        self._changed()
        if self._joined.keys() != self.heard_ms.keys():
            return
        self.generation += 1
        self.is_rebalancing = False
        joined, self._joined = self._joined, {}
        for position, (member_id, reply) in enumerate(sorted(joined.items())):
            self.heard_ms[member_id] = self.world.now_ms
            reply(member_id, self.generation, frozenset(range_of(position, len(joined), self._settings.partitions)))


class ServerSideMember:
    """A member that does as the coordinator says."""

    def __init__(self, group: ServerSideGroup, number: int) -> None:
        self._group = group
        self.process = Process(group.world, number)
        self.owned: frozenset[int] = frozenset()
        self._member_id = self._generation = self._attempt = 0
        self._is_joining = False

    @property
    def is_fenced(self) -> bool:
        return self._member_id not in self._group.coordinator.heard_ms

    def start(self) -> None:
        self._member_id = 0
        self._join()

    def leave(self) -> None:
        self._own(frozenset())
        self.process.send(self._group.coordinator.leave, self._member_id)
        self.process.stop()

    def reconnect(self) -> None:
        if self._is_joining:
            self._join()

    def _heartbeat(self, attempt: int) -> None:
        """Each assignment starts the heartbeats again, so that members of one generation send theirs together."""
        if attempt == self._attempt and not self._is_joining:
            self.process.send(self._answer_heartbeat, self._member_id, self._generation, heartbeat=True)
            self.process.after(self._group.settings.heartbeat_interval_ms, self._heartbeat, attempt)

    def _answer_heartbeat(self, member_id: int, generation: int) -> None:
        answer = self._group.coordinator.heartbeat(member_id, generation)
        self.process.deliver(self._heard, answer, member_id, heartbeat=True)

    def _heard(self, answer: str, member_id: int) -> None:
        if answer == "known" or member_id != self._member_id or self._is_joining:
            return
        if answer == "unknown":
            self._member_id = 0
        # The application is processing records; it notices at its next poll.
        self._is_joining = True
        self.process.after(self._group.world.random.randint(*POLL_MS), self._join)

    def _join(self) -> None:
        self._is_joining = True
        self._attempt += 1
        self._own(frozenset())
        self.process.send(self._arrive, self._member_id, self._attempt, self.process.incarnation)
        self.process.after(REQUEST_TIMEOUT_MS, self._retry, self._attempt)

    def _retry(self, attempt: int) -> None:
        # An answer may take as long as the slowest member; only a lost request is sent again.
        if self._is_joining and attempt == self._attempt and self.process.is_cut_off:
            self._join()

    def _arrive(self, member_id: int, attempt: int, incarnation: int) -> None:
        def reply(given: int, generation: int, partitions: frozenset[int]) -> None:
            self.process.deliver(self._assigned, attempt, given, generation, partitions, incarnation=incarnation)

        self._group.coordinator.join(member_id, reply)

    def _assigned(self, attempt: int, member_id: int, generation: int, partitions: frozenset[int]) -> None:
        if attempt == self._attempt:
            self._is_joining = False
            self._member_id, self._generation = member_id, generation
            self._own(partitions)
            self.process.after(self._group.settings.heartbeat_interval_ms, self._heartbeat, attempt)

    def _own(self, partitions: frozenset[int]) -> None:
        self.owned = partitions
        self._group.note(self)


class ServerSideGroup(Group):
    """Members and the coordinator that assigns."""

    def __init__(self, world: World, ledger: Ledger, settings: LabSettings) -> None:
        super().__init__(world, ledger)
        self.settings = settings
        self.coordinator = Coordinator(world, settings, self.note_all)
        self.members = [ServerSideMember(self, number) for number in range(settings.members)]
