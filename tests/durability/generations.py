"""What is known of the group's generations: who was in each, as members were told and as the broker described them."""

from __future__ import annotations

from collections import defaultdict

FORMED = ("CompletingRebalance", "Stable")


class Generations:
    """Each method raises AssertionError where what it is told cannot be true together with what is known."""

    def __init__(self) -> None:
        self.told: dict[int, set[str]] = defaultdict(set)
        self.leaders: dict[int, str] = {}
        self.described: dict[int, frozenset[str]] = {}
        self.went_back = 0  # to the last stable generation, as Kafka does after a crash
        self._floor = 0  # no generation formed by this run of the broker may be as low
        self._restored: int | None = None
        self._last_stable = 0  # the newest that was described as such
        self._newest = 0

    def tell(self, generation: int, member_id: str, leader: str) -> None:
        """A member learned its generation from the answer to its JoinGroup."""
        self.told[generation].add(member_id)
        self._has_leader(generation, leader)
        self._are_members(generation)

    def restarted(self) -> None:
        """The broker was killed, and every journal read up to then: what was known so far must not be formed again."""
        self._floor = max(self._newest, *self.told, 0)
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
        return max(self._newest, *self.told, 0)

    def _has_leader(self, generation: int, leader: str) -> None:
        known = self.leaders.setdefault(generation, leader)
        assert known == leader, f"generation {generation} has two leaders, {known} and {leader}"

    def _are_members(self, generation: int) -> None:
        strangers = self.told[generation] - self.described.get(generation, self.told[generation])
        assert not strangers, f"generation {generation} was told to {sorted(strangers)}, who are not in it"
