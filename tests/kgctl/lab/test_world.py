"""The clock, the processes and the ledger of the simulations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.lab.ledger import Ledger
from kgctl.lab.world import Process, World

PARTITIONS = 4


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from(["a", "b", "c"]),
            st.frozensets(st.integers(0, PARTITIONS - 1)),
            st.booleans(),
        ),
        max_size=20,
    )
)
def test_the_ledger_adds_up_what_a_look_at_every_moment_would_count(
    notes: list[tuple[int, str, frozenset[int], bool]],
) -> None:
    world = World("")
    ledger = Ledger(world, PARTITIONS)
    shares: dict[str, tuple[frozenset[int], bool]] = {}
    double = fenced = unowned = 0
    for wait_ms, member, share, is_fenced in notes:
        owners = [[one for one, is_out in shares.values() if not is_out and p in one] for p in range(PARTITIONS)]
        double += wait_ms * sum(max(0, len(those) - 1) for those in owners)
        unowned += wait_ms * sum(not those for those in owners)
        fenced += wait_ms * sum(len(one) for one, is_out in shares.values() if is_out)
        world.run_until(world.now_ms + wait_ms)
        shares[member] = (share, is_fenced)
        ledger.note(member, share, fenced=is_fenced)
    ledger.pass_time()
    assert (ledger.double_ms, ledger.fenced_ms, ledger.unowned_ms) == (double, fenced, unowned)


def started(world: World) -> Process:
    process = Process(world, 0)
    process.start()
    return process


def test_actions_run_at_their_times_and_in_the_order_in_which_they_were_asked_for() -> None:
    world, seen = World(""), list[str]()
    for ms, name in [(5, "later"), (1, "first"), (1, "second")]:
        world.after(ms, seen.append, name)
    world.run_until(4)
    assert (seen, world.now_ms) == (["first", "second"], 4)
    world.run_until(5)
    assert seen[-1] == "later"


def test_messages_arrive_in_the_order_in_which_they_were_sent() -> None:
    world, sent, delivered = World("7"), list[int](), list[int]()
    process = started(world)
    for number in range(50):
        process.send(sent.append, number)
        process.deliver(delivered.append, number, heartbeat=True)
    world.run_until(100)
    assert sent == delivered == list(range(50))
    assert (world.messages, world.heartbeats) == (50, 50)


def test_a_paused_process_does_everything_later_and_a_new_one_knows_nothing_of_the_old_one() -> None:
    world, seen = World(""), list[str]()
    process = started(world)
    process.after(1, seen.append, "paused")
    process.is_paused = True
    world.run_until(10)
    assert seen == []
    process.resume()
    process.after(1, seen.append, "crashed")
    world.run_until(10)
    process.stop()
    process.start()
    world.run_until(20)
    assert seen == ["paused"]


def test_a_process_that_is_cut_off_neither_sends_nor_receives_but_works() -> None:
    world, seen = World(""), list[str]()
    process = started(world)
    process.is_cut_off = True
    process.send(seen.append, "sent")
    process.deliver(seen.append, "delivered")
    process.after(1, seen.append, "worked")
    world.run_until(10)
    assert seen == ["worked"]
