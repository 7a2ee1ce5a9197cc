"""The design of Kafka 0.8: every member watches ZooKeeper and assigns partitions to itself.

As the consumer of that time did: a member registers itself with an ephemeral node and watches the nodes of the others and of the
topics. When a watch fires, it gives up its partitions, reads everything, computes the whole assignment and takes
its own part by creating an ephemeral node for each partition. If another member still has one of them, it gives up all of
them and tries again after a while; after a few attempts it waits for the next change.
"""

from __future__ import annotations

from collections.abc import Callable

from kgctl.lab.design import Group, LabSettings, range_of
from kgctl.lab.ledger import Ledger
from kgctl.lab.world import Process, World

ATTEMPTS = 4  # rebalance.max.retries
BACKOFF_MS = 2_000  # rebalance.backoff.ms
SERVERS = 3
LAG_MS = 100  # a server shows a change at the latest after this time (syncLimit allows seconds)
READ_MS = 1


class ZooKeeper:
    """The nodes of one group. Reads are those of one server, and servers lag behind; writes are immediate."""

    def __init__(self, world: World, settings: LabSettings) -> None:
        self.world, self._settings = world, settings
        self.registered: dict[int, int] = {}
        """The session of each registered member."""
        self.owners: dict[int, int] = {}
        """The session that owns each partition."""
        self._contact_ms: dict[int, int] = {}
        self._watches: dict[int, Callable[[], None]] = {}
        self._sessions = 0
        self._shown: list[list[tuple[int, frozenset[int]]]] = [[(0, frozenset())] for _ in range(SERVERS)]
        """What each server shows from which time on: the numbers of the registered members."""

    def open_session(self) -> int:
        self._sessions += 1
        self._contact_ms[self._sessions] = self.world.now_ms
        self.world.after(self._settings.session_timeout_ms, self._check, self._sessions)
        return self._sessions

    def is_open(self, session: int) -> bool:
        return session in self._contact_ms

    def ping(self, session: int) -> bool:
        """Whether the session is still there."""
        if self.is_open(session):
            self._contact_ms[session] = self.world.now_ms
        return self.is_open(session)

    def register(self, session: int, number: int) -> None:
        if self.is_open(session):
            self.registered[number] = session
            self._members_changed()

    def close(self, session: int) -> None:
        """The session ends or expires: its ephemeral nodes disappear."""
        if self._contact_ms.pop(session, None) is None:
            return
        self._watches.pop(session, None)
        self.owners = {partition: owner for partition, owner in self.owners.items() if owner != session}
        gone = [number for number, one in self.registered.items() if one == session]
        for number in gone:
            del self.registered[number]
        if gone:
            self._members_changed()

    def read_members(self, session: int, notify: Callable[[], None]) -> list[int]:
        """What the server of this session shows, and a watch for the next change."""
        if self.is_open(session):
            self._watches[session] = notify
        shown = self._shown[session % SERVERS]
        return sorted(next(numbers for at_ms, numbers in reversed(shown) if at_ms <= self.world.now_ms))

    def claim(self, session: int, partition: int) -> bool:
        """Create the node of a partition, which fails if it exists."""
        return self.is_open(session) and self.owners.setdefault(partition, session) == session

    def release(self, session: int) -> int:
        """Delete the nodes of all partitions that the session owns; how many there were."""
        mine = [partition for partition, owner in self.owners.items() if owner == session]
        for partition in mine:
            del self.owners[partition]
        return len(mine)

    def _members_changed(self) -> None:
        numbers = frozenset(self.registered)
        for server, shown in enumerate(self._shown):
            at_ms = max(self.world.now_ms + self.world.random.randrange(LAG_MS), shown[-1][0])
            shown.append((at_ms, numbers))
            del shown[:-50]
            self.world.after(at_ms - self.world.now_ms, self._fire, server)

    def _fire(self, server: int) -> None:
        """One notification for every member that watches."""
        for session in [one for one in self._watches if one % SERVERS == server]:
            self._watches.pop(session)()

    def _check(self, session: int) -> None:
        if self.is_open(session):
            left = self._contact_ms[session] + self._settings.session_timeout_ms - self.world.now_ms
            if left <= 0:
                self.close(session)
            else:
                self.world.after(left, self._check, session)


class ZooKeeperMember:
    """A consumer of Kafka 0.8. Nothing fences it: its commits are accepted whatever ZooKeeper says."""

    is_fenced = False

    def __init__(self, group: ZooKeeperGroup, number: int) -> None:
        self._group, self.number = group, number
        self.process = Process(group.world, number)
        self.owned: set[int] = set()
        self._session = 0
        self._is_busy = self._is_outdated = False

    def start(self) -> None:
        self.owned = set()
        self._register()
        self._ping()

    def leave(self) -> None:
        self._own(set())
        self._group.world.count(2)
        self._group.zookeeper.close(self._session)
        self.process.stop()

    def reconnect(self) -> None:
        self._ask_session()

    # --- the session ---

    def _register(self) -> None:
        self._is_busy = self._is_outdated = False
        self._session = self._group.zookeeper.open_session()
        self._group.world.count(2)
        self._group.zookeeper.register(self._session, self.number)
        self._rebalance()

    def _ping(self) -> None:
        self._ask_session()
        self.process.after(self._group.settings.heartbeat_interval_ms, self._ping)

    def _ask_session(self) -> None:
        self.process.send(self._answer_ping, self._session, heartbeat=True)

    def _answer_ping(self, session: int) -> None:
        self.process.deliver(self._pinged, session, self._group.zookeeper.ping(session), heartbeat=True)

    def _pinged(self, session: int, is_open: bool) -> None:
        if not is_open and session == self._session:
            # Only now does it learn that its session has expired.
            self._own(set())
            self._register()

    def _notified(self) -> None:
        self.process.deliver(self._changed)

    def _changed(self) -> None:
        self._group.notifications += 1
        if self._is_busy:
            self._is_outdated = True
        else:
            self._rebalance()

    # --- rebalancing ---

    def _rebalance(self, attempt: int = 1) -> None:
        self._is_busy, self._is_outdated = True, False
        if self.process.is_cut_off:
            self.process.after(BACKOFF_MS, self._rebalance, attempt)
            return
        self._group.attempts += 1
        self._own(set())
        zookeeper = self._group.zookeeper
        self._group.world.count(2 * zookeeper.release(self._session))
        seen = zookeeper.read_members(self._session, self._notified)
        # One read for each member's subscription, one for the list of members and one for the partitions.
        reads = len(seen) + 2
        self._group.world.count(2 * reads)
        self.process.after(reads * READ_MS + self._group.world.latency(), self._claim, attempt, seen)

    def _claim(self, attempt: int, seen: list[int]) -> None:
        wanted = range(0)
        if self.number in seen:
            wanted = range_of(seen.index(self.number), len(seen), self._group.settings.partitions)
        zookeeper = self._group.zookeeper
        self._group.world.count(2 * len(wanted))
        if not self.process.is_cut_off and all(zookeeper.claim(self._session, partition) for partition in wanted):
            self._is_busy = False
            self._own(set(wanted))
            if self._is_outdated or self.number not in seen:
                self._rebalance()
            return
        self._group.failed_attempts += 1
        zookeeper.release(self._session)
        if attempt < ATTEMPTS or self._is_outdated:
            self.process.after(BACKOFF_MS, self._rebalance, 1 if self._is_outdated else attempt + 1)
        else:
            self._is_busy = False

    def _own(self, partitions: set[int]) -> None:
        self.owned = partitions
        self._group.note(self)


class ZooKeeperGroup(Group):
    """Members that coordinate by watching each other."""

    def __init__(self, world: World, ledger: Ledger, settings: LabSettings) -> None:
        super().__init__(world, ledger)
        self.settings = settings
        self.zookeeper = ZooKeeper(world, settings)
        self.notifications = self.attempts = self.failed_attempts = 0
        self.members = [ZooKeeperMember(self, number) for number in range(settings.members)]
