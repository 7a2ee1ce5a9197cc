"""What the simulations of Kafka's designs show, and that they show it with every seed."""

from __future__ import annotations

import itertools

import pytest

from kgctl.lab import failures
from kgctl.lab.design import Group, LabSettings, range_of
from kgctl.lab.failures import Trouble
from kgctl.lab.ledger import Ledger
from kgctl.lab.play import DESIGNS, Outcome, compare, play
from kgctl.lab.world import World

SMALL = LabSettings(members=6, partitions=18)
every_design = pytest.mark.parametrize("design", DESIGNS)
with_the_real_cores = pytest.mark.parametrize("design", ["two-phase", "cooperative"])


class Scene:
    """A group that has settled, for one trouble."""

    def __init__(self, design: str, settings: LabSettings = SMALL) -> None:
        self.world = World("scene")
        self.ledger = Ledger(self.world, settings.partitions)
        self.group: Group = DESIGNS[design](self.world, self.ledger, settings)
        self.group.start()
        self.pass_seconds(40)
        self.ledger.forget_times()

    def pass_seconds(self, seconds: float) -> None:
        self.world.run_until(self.world.now_ms + int(seconds * 1000))
        self.ledger.pass_time()

    def meets(self, trouble: Trouble, member: int = 0) -> None:
        self.group.disturb(trouble, self.group.members[member])

    def owned(self) -> list[set[int]]:
        return [set(member.owned) if member.process.works else set() for member in self.group.members]


@every_design
def test_the_same_seed_gives_the_same_result(design: str) -> None:
    assert play(design, SMALL, 3, 7) == play(design, SMALL, 3, 7)


@every_design
def test_a_group_settles_with_equal_shares(design: str) -> None:
    scene = Scene(design)
    assert scene.ledger.is_whole()
    assert sorted(map(len, scene.owned())) == [3] * 6


@every_design
@pytest.mark.parametrize("trouble", failures.WAY_BACK)
def test_a_group_settles_after_every_trouble_and_after_its_repair(design: str, trouble: Trouble) -> None:
    scene = Scene(design)
    scene.meets(trouble)
    scene.pass_seconds(20)
    others = scene.owned()[1:]
    assert set.union(*others) == set(range(18))
    scene.meets(failures.WAY_BACK[trouble])
    scene.pass_seconds(40)
    assert scene.ledger.is_whole()
    assert sorted(map(len, scene.owned())) == [3] * 6


@every_design
def test_a_partition_of_a_paused_member_has_no_owner(design: str) -> None:
    scene = Scene(design)
    scene.meets(Trouble.PAUSE)
    scene.pass_seconds(2)
    assert scene.ledger.unowned_ms == 3 * 2_000


@with_the_real_cores
@pytest.mark.parametrize("seed", range(3))
def test_two_phases_never_let_two_owners_commit(design: str, seed: int) -> None:
    outcome = play(design, LabSettings(members=5, partitions=10), 5, seed)
    assert outcome.double_ms == 0
    assert outcome.unstable == 0


@pytest.mark.parametrize("design", ["server-side", "two-phase", "cooperative"])
def test_a_coordinator_fences_a_member_that_it_has_given_up(design: str) -> None:
    scene = Scene(design)
    scene.meets(Trouble.CUT_OFF)
    scene.pass_seconds(20)
    assert scene.owned()[0]
    assert scene.group.members[0].is_fenced
    assert (scene.ledger.double_ms, scene.ledger.is_whole()) == (0, True)
    assert scene.ledger.fenced_ms > 3 * 3_000


def test_nothing_fences_a_member_that_has_lost_zookeeper() -> None:
    scene = Scene("zookeeper")
    scene.meets(Trouble.CUT_OFF)
    scene.pass_seconds(20)
    assert scene.owned()[0]
    assert not scene.ledger.is_whole()
    assert scene.ledger.double_ms > 3 * 3_000
    scene.meets(Trouble.RECONNECT)
    scene.pass_seconds(20)
    assert scene.ledger.is_whole()


def messages(design: str, members: int) -> int:
    return play(design, LabSettings(members=members, partitions=2 * members), 4, 1).messages


def test_the_herd_grows_with_the_square_of_the_members_and_a_coordinator_only_with_their_number() -> None:
    herd = [messages("zookeeper", members) for members in (20, 40, 80)]
    assert all(3 < larger / smaller < 5 for smaller, larger in itertools.pairwise(herd))
    for design in ("server-side", "two-phase"):
        assert 1.5 < messages(design, 24) / messages(design, 12) < 2.5


def test_every_change_notifies_every_member_that_watches() -> None:
    scene = Scene("zookeeper")
    before = vars(scene.group)["notifications"]
    scene.meets(Trouble.CRASH)
    scene.pass_seconds(20)
    assert vars(scene.group)["notifications"] - before == 5


def test_cooperative_members_keep_their_partitions_through_a_rebalance_and_eager_ones_do_not() -> None:
    kept = {}
    for design in ("two-phase", "cooperative"):
        scene = Scene(design)
        before = scene.owned()[1:]
        scene.meets(Trouble.CRASH)
        kept[design] = True
        for _ in range(200):
            scene.pass_seconds(0.1)
            kept[design] &= all(now >= then for now, then in zip(scene.owned()[1:], before, strict=True))
        assert scene.ledger.is_whole()
    assert kept == {"two-phase": False, "cooperative": True}


def test_the_figures_of_several_seeds_are_added_up() -> None:
    (row,) = compare(["server-side"], SMALL, 2, [1, 2])
    both: list[Outcome] = [play("server-side", SMALL, 2, seed) for seed in (1, 2)]
    assert row.messages == sum(one.messages for one in both)
    assert row.unowned_s == round(sum(one.unowned_ms for one in both) / 1000, 1)
    assert (row.seeds, row.members, row.partitions, row.failures) == (2, 6, 18, 2)
    assert row.slowest_s == round(max(ms for one in both for ms in one.settled_ms) / 1000, 1)


def test_all_designs_meet_the_same_failures_and_each_is_repaired_before_the_next() -> None:
    drawn = failures.draw(3, 6, 50)
    assert drawn == failures.draw(3, 6, 50)
    assert drawn != failures.draw(4, 6, 50)
    assert [one.at_ms for one in drawn] == sorted(one.at_ms for one in drawn)
    for broken, repaired in zip(drawn[::2], drawn[1::2], strict=True):
        assert (repaired.trouble, repaired.member) == (failures.WAY_BACK[broken.trouble], broken.member)
    assert {one.trouble for one in drawn} == set(Trouble)


@pytest.mark.parametrize(("takers", "partitions"), [(1, 5), (3, 10), (4, 4), (5, 3)])
def test_ranges_cover_all_partitions_once(takers: int, partitions: int) -> None:
    shares = [list(range_of(position, takers, partitions)) for position in range(takers)]
    assert list(itertools.chain(*shares)) == list(range(partitions))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
