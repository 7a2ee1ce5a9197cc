"""What every design has: members with processes, their troubles, and a ledger of who owns what."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from broker.light_dataclasses import dataclass
from kgctl.lab.failures import Disturbance, Trouble
from kgctl.lab.ledger import Ledger
from kgctl.lab.world import Process, World


@dataclass(frozen=True, slots=True)
class LabSettings:
    """Times are the same for all designs: a member that is silent for the session timeout is given up."""

    members: int = 20
    partitions: int = 60
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000


class Member(Protocol):
    """One member of a group in one design."""

    process: Process

    @property
    def owned(self) -> Collection[int]:
        """The partitions that it works on."""
        ...

    @property
    def is_fenced(self) -> bool:
        """Whether its commits would be refused."""
        ...

    def start(self) -> None:
        """A new process starts and joins."""
        ...

    def leave(self) -> None:
        """The process ends in order."""
        ...

    def reconnect(self) -> None:
        """The network is there again; what was open before is not."""
        ...


class Group:
    """The members of a group, whatever the design."""

    def __init__(self, world: World, ledger: Ledger) -> None:
        self.world, self._ledger = world, ledger
        self.members: list[Member] = []

    def start(self) -> None:
        """All members start within a second."""
        for member in self.members:
            self.world.after(self.world.random.randrange(1_000), self.disturb, Trouble.START, member)

    def schedule(self, disturbances: Collection[Disturbance]) -> None:
        for each in disturbances:
            self.world.after(each.at_ms - self.world.now_ms, self.disturb, each.trouble, self.members[each.member])

    def disturb(self, trouble: Trouble, member: Member) -> None:
        process = member.process
        if trouble is Trouble.START:
            process.start()
            member.start()
        elif trouble is Trouble.LEAVE:
            member.leave()
        elif trouble is Trouble.CRASH:
            process.stop()
        elif trouble is Trouble.PAUSE:
            process.is_paused = True
        elif trouble is Trouble.RESUME:
            process.resume()
        elif trouble is Trouble.CUT_OFF:
            process.is_cut_off = True
        else:
            process.is_cut_off = False
            member.reconnect()
        self.note(member)

    def note(self, member: Member) -> None:
        """Something about the member may have changed."""
        owned = member.owned if member.process.works else ()
        self._ledger.note(member.process.name, owned, fenced=bool(owned) and member.is_fenced)

    def note_all(self) -> None:
        for member in self.members:
            self.note(member)


def range_of(position: int, takers: int, partitions: int) -> range:
    """The partitions of one of the takers: the range assignor with one topic."""
    share, extra = divmod(partitions, takers)
    start = position * share + min(position, extra)
    return range(start, start + share + (position < extra))
