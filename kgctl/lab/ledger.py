"""Who owns which partition at which time, added up."""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.lab.world import World


class Ledger:
    """Times in milliseconds, summed over partitions.

    A member owns what it processes. Owners count as long as they work; the broker accepts commits of those that are not
    fenced. `double_ms`: each owner of a partition beyond the first, if its commits are accepted. `fenced_ms`: owners whose commits are
    refused. `unowned_ms`: partitions without an owner whose commits are accepted.
    """

    def __init__(self, world: World, partitions: int) -> None:
        self._world = world
        self._accepted = [0] * partitions
        self._shares: dict[str, tuple[frozenset[int], bool]] = {}
        self._unowned, self._double, self._fenced = partitions, 0, 0
        self._since_ms = 0
        self.double_ms = self.fenced_ms = self.unowned_ms = 0
        self.last_change_ms = 0

    def is_whole(self) -> bool:
        """Whether each partition has exactly one owner whose commits are accepted."""
        return not (self._unowned or self._double)

    def note(self, member: str, owned: Iterable[int], *, fenced: bool) -> None:
        """From now on the member works on these partitions."""
        share = frozenset(owned)
        before = self._shares.get(member, (frozenset[int](), False))
        if (share, fenced) == before or (not share and not before[0]):
            return
        self.pass_time()
        self._add(*before, -1)
        self._add(share, fenced, +1)
        self._shares[member] = (share, fenced)
        self.last_change_ms = self._world.now_ms

    def pass_time(self) -> None:
        """Add up what has been the case until now."""
        ms = self._world.now_ms - self._since_ms
        self._since_ms = self._world.now_ms
        self.double_ms += ms * self._double
        self.fenced_ms += ms * self._fenced
        self.unowned_ms += ms * self._unowned
        if not self.is_whole():
            self.last_change_ms = self._world.now_ms

    def forget_times(self) -> None:
        """Start to count now."""
        self.pass_time()
        self.double_ms = self.fenced_ms = self.unowned_ms = 0

    def _add(self, share: frozenset[int], fenced: bool, by: int) -> None:
        if fenced:
            self._fenced += by * len(share)
            return
        for partition in share:
            count = self._accepted[partition] = self._accepted[partition] + by
            if by > 0:
                self._unowned -= count == 1
                self._double += count > 1
            else:
                self._unowned += count == 0
                self._double -= count > 0
