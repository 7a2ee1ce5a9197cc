"""The generations of the group: the members of each, as members learned them and as the broker described them."""

from __future__ import annotations

from collections import defaultdict

FORMED = ("CompletingRebalance", "Stable")


class Generations:
    """Each method raises AssertionError if its arguments contradict what is known."""

    def __init__(self) -> None:
        self.learned: dict[int, set[str]] = defaultdict(set)
        self.leaders: dict[int, str] = {}
        self.described: dict[int, frozenset[str]] = {}
        self.went_back = 0  # times that a restart restored an earlier stable generation, as Kafka does after a crash
        self._floor = 0  # generations that this run of the broker forms must be higher
        self._restored: int | None = None
        self._last_stable = 0  # the newest generation described as Stable
        self._newest = 0

    def learn(self, generation: int, member_id: str, leader: str) -> None:
        """A member learned its generation from a JoinGroup response."""
        self.learned[generation].add(member_id)
        self._has_leader(generation, leader)
        self._are_members(generation)

    def restarted(self) -> None:
        """The broker was killed, and all journals are read: no known generation may be formed again."""
        self._floor = max(self._newest, *self.learned, 0)
        self._restored = None

    def describe(self, generation: int, state: str, leader: str | None, members: frozenset[str]) -> None:
        if self._restored is None:
            self._restored = generation
            assert generation >= self._last_stable, (
                f"generation {generation} after a restart, and {self._last_stable} was stable before"
            )
            self.went_back += generation < self._floor
        if generation != self._restored:
            assert generation > self._floor, (
                f"generation {generation} was formed again: {self._floor} was known before the restart"
            )
        assert generation >= self._newest or generation <= self._floor, f"generation {generation} after {self._newest}"
        self._newest = max(self._newest, generation)
        if state not in FORMED:
            return
        assert self.described.setdefault(generation, members) == members, (
            f"generation {generation} had the members {sorted(self.described[generation])}, now {sorted(members)}"
        )
        self._are_members(generation)
        if leader is not None:
            self._has_leader(generation, leader)
        if state == "Stable":
            self._last_stable = max(self._last_stable, generation)

    @property
    def newest(self) -> int:
        return max(self._newest, *self.learned, 0)

    def _has_leader(self, generation: int, leader: str) -> None:
        known = self.leaders.setdefault(generation, leader)
        assert known == leader, f"generation {generation} has two leaders, {known} and {leader}"

    def _are_members(self, generation: int) -> None:
        strangers = self.learned[generation] - self.described.get(generation, self.learned[generation])
        assert not strangers, f"generation {generation} was sent to {sorted(strangers)}, which are not members"
