"""Timers: the earliest due key first, cheap restarts, no growth from cancelled keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.timers import Timers

A, B = ("session", "group", "a"), ("session", "group", "b")


def drain(timers: Timers, now_ms: int) -> list[tuple[str, ...]]:
    out = []
    while (key := timers.pop_due(now_ms)) is not None:
        out.append(key)
    return out


def test_a_key_is_due_exactly_at_its_deadline() -> None:
    timers = Timers()
    timers.set(A, 100)
    assert timers.pop_due(99) is None
    assert timers.pop_due(100) == A
    assert timers.pop_due(1000) is None


def test_due_keys_are_returned_in_order_of_their_deadlines() -> None:
    timers = Timers()
    timers.set(B, 100)
    timers.set(A, 100)
    timers.set(("join", "group"), 50)
    assert drain(timers, 100) == [("join", "group"), B, A]


def test_a_later_deadline_replaces_the_earlier_one() -> None:
    timers = Timers()
    timers.set(A, 100)
    timers.set(A, 200)
    assert drain(timers, 199) == []
    assert drain(timers, 200) == [A]


def test_a_restarted_key_does_not_overtake_an_earlier_one() -> None:
    timers = Timers()
    timers.set(A, 50)
    timers.set(B, 70)
    timers.set(A, 80)
    assert drain(timers, 100) == [B, A]


def test_an_earlier_deadline_replaces_the_later_one() -> None:
    timers = Timers()
    timers.set(A, 300_000)
    timers.set(A, 200)
    assert timers.wake_at() == 200
    assert drain(timers, 200) == [A]
    assert drain(timers, 300_000) == []


def test_a_cancelled_key_is_never_due() -> None:
    timers = Timers()
    timers.set(A, 100)
    timers.cancel(A)
    timers.cancel(A)
    assert timers.wake_at() is None
    assert drain(timers, 1000) == []
    assert A not in timers


def test_a_key_set_again_after_a_cancel_is_due_once() -> None:
    timers = Timers()
    timers.set(A, 100)
    timers.cancel(A)
    timers.set(A, 150)
    assert drain(timers, 1000) == [A]


def test_restarts_and_cancelled_keys_do_not_grow_the_heap() -> None:
    timers = Timers()
    for now in range(10_000):
        timers.set(A, now + 30_000)
    assert len(timers._heap) == 1
    for number in range(10_000):
        timers.set(("session", "group", str(number)), 1_800_000)
        timers.cancel(("session", "group", str(number)))
    assert len(timers._heap) < 200


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("set"), st.sampled_from("abcd"), st.integers(0, 50)),
            st.tuples(st.just("cancel"), st.sampled_from("abcd"), st.just(0)),
            st.tuples(st.just("advance"), st.just(""), st.integers(0, 60)),
        )
    )
)
def test_timers_agree_with_a_simple_model(acts: list[tuple[str, str, int]]) -> None:
    timers, model, now = Timers(), dict[tuple[str, ...], int](), 0
    for act, name, value in acts:
        if act == "set":
            timers.set((name,), now + value)
            model[name,] = now + value
        elif act == "cancel":
            timers.cancel((name,))
            model.pop((name,), None)
        else:
            now += value
            due = drain(timers, now)
            assert sorted(due, key=model.__getitem__) == due
            assert set(due) == {key for key, deadline in model.items() if deadline <= now}
            for key in due:
                del model[key]
        assert len(timers) == len(model)
        wake = timers.wake_at()
        assert (wake is None) == (not model)
        assert wake is None or wake <= min(model.values())
