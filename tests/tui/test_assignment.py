"""Who has which partition: what a rebalance changed, how it is laid out, and the keys of the pane."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kgctl.model.groups import by_topic
from kgctl.model.watched import Assignment
from kgctl.tui.widgets.assignment import AssignmentPane
from kgctl.tui.widgets.grid import AssignmentGrid
from kgctl.tui.widgets.matrix import GAINED, KEPT, LOST, TWICE, UNASSIGNED, Sheet, View, fate, sheet
from kgctl.tui.widgets.moves import in_words, moves, ranges
from tests.tui.panes import Host, assigned, dealt

BEFORE = assigned(a="orders:0-5", b="orders:6-8 payments:0", c="orders:9-11")
AFTER = assigned(a="orders:0-5,9", b="orders:6-8 payments:0", d="orders:10")

PARTITIONS = st.tuples(st.sampled_from(["orders", "payments"]), st.integers(min_value=0, max_value=5))
ASSIGNMENTS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]), st.lists(PARTITIONS, max_size=8).map(by_topic), max_size=4
)
READ = st.sets(PARTITIONS, max_size=8)


# ---- what a rebalance changed


def test_it_says_who_kept_gained_and_lost_what() -> None:
    change = moves(AFTER, BEFORE)
    assert change.kept["a"] == {("orders", number) for number in range(6)}
    assert change.gained == {"a": {("orders", 9)}, "b": set(), "c": set(), "d": {("orders", 10)}}
    assert change.lost["c"] == {("orders", 9), ("orders", 10), ("orders", 11)}
    assert (change.joined, change.left) == ({"d"}, {"c"})
    assert change.unassigned == {("orders", 11)}
    assert in_words(change) == "13 partitions: 10 stay, 2 move, 1 unassigned; stickiness 76 %"


def test_one_assignment_alone_moves_nothing() -> None:
    change = moves(assigned(a="orders:0-1", b="orders:2"), None, [("orders", 3)])
    assert not any(change.gained.values())
    assert change.stickiness is None
    assert in_words(change) == "4 partitions: 3 assigned to 2 members, 1 unassigned"


def test_a_partition_with_two_members_is_told_and_neither_stays_nor_moves() -> None:
    change = moves(assigned(a="orders:0-1", b="orders:1"), assigned(a="orders:0-1"))
    assert change.doubled == {("orders", 1)}
    assert in_words(change) == "2 partitions: 1 stays, 0 move, 1 twice; stickiness 50 %"


def test_a_partition_that_nobody_had_is_new() -> None:
    change = moves(assigned(a="orders:0-1"), assigned(a="orders:0"))
    assert in_words(change) == "2 partitions: 1 stays, 0 move, 1 new; stickiness 100 %"


def test_a_partition_that_nobody_had_or_has_is_unassigned_if_the_group_reads_it() -> None:
    assert moves({}, {}, [("orders", 0)]).unassigned == {("orders", 0)}
    assert in_words(moves({}, {})) == "0 partitions: 0 stay, 0 move"


def test_stickiness_is_100_only_if_all_stay() -> None:
    before = assigned(a="orders:0-999")
    after = assigned(a="orders:0-998", b="orders:999")
    assert moves(after, before).stickiness == 99
    assert moves(before, before).stickiness == 100


@given(ASSIGNMENTS, st.none() | ASSIGNMENTS, READ)
def test_each_partition_has_one_fate(after: Assignment, before: Assignment | None, read: set[tuple[str, int]]) -> None:
    change = moves(after, before, read)
    fates = [change.stay, change.moved, change.new, change.unassigned, change.doubled]
    assert sorted(one for some in fates for one in some) == list(change.partitions)
    assert read <= set(change.partitions)


@given(ASSIGNMENTS, ASSIGNMENTS)
def test_a_member_has_what_it_kept_and_gained_and_had_what_it_kept_and_lost(
    after: Assignment, before: Assignment
) -> None:
    change = moves(after, before)
    for member in change.members:
        has = {(one.topic, number) for one in after.get(member, ()) for number in one.partitions}
        had = {(one.topic, number) for one in before.get(member, ()) for number in one.partitions}
        kept, gained, lost = change.kept[member], change.gained[member], change.lost[member]
        assert (kept | gained, kept | lost) == (has, had)
        assert not kept & gained
        assert not kept & lost


@given(ASSIGNMENTS, ASSIGNMENTS)
def test_backwards_gained_is_lost(after: Assignment, before: Assignment) -> None:
    there, back = moves(after, before), moves(before, after)
    assert (there.gained, there.lost) == (back.lost, back.gained)
    assert (there.joined, there.left) == (back.left, back.joined)


@given(st.lists(st.integers(min_value=0, max_value=60)))
def test_ranges_name_each_number_once_and_no_other(numbers: list[int]) -> None:
    found: list[int] = []
    for one in filter(None, ranges(numbers).split(",")):
        first, _, last = one.partition("-")
        found += range(int(first), int(last or first) + 1)
    assert found == sorted(set(numbers))


def test_neighbours_are_one_range() -> None:
    assert ranges([14, *range(12)]) == "0-11,14"
    assert ranges([]) == ""


# ---- layout


def _lines(shown: Sheet) -> dict[str, str]:
    return {row.label[0].strip(): "".join(text for text, _ in shown.body(row)).rstrip() for row in shown.rows}


def test_a_column_has_its_sign_under_its_number() -> None:
    shown = sheet(moves(AFTER, BEFORE), {}, View.BOTH, 100)
    header = ["".join(text for text, _ in line) for line in shown.header(0)]
    assert header[0].split() == ["orders", "payments"]
    for number in range(12):
        at = header[1].index(f"{number:>2}") + 1
        assert _lines(shown)["a"].ljust(60)[at] == {9: GAINED}.get(number, KEPT if number < 6 else "\u00b7")


def test_what_is_wrong_stands_first_and_who_has_left_last() -> None:
    faulty = moves(assigned(a="orders:0", z="orders:0"), assigned(b="orders:0-1"))
    labels = [row.label[0] for row in sheet(faulty, {}, View.BOTH, 80).rows]
    assert labels == [f"! {UNASSIGNED}", f"! {TWICE}", "+ a", "+ z", "- b"]


def test_before_and_after_show_only_who_was_a_member_then() -> None:
    change = moves(AFTER, BEFORE)
    assert set(_lines(sheet(change, {}, View.AFTER, 80))) == {f"! {UNASSIGNED}", "a", "b", "d"}
    assert set(_lines(sheet(change, {}, View.BEFORE, 80))) == {"a", "b", "c"}


def test_a_member_called_unassigned_is_a_member() -> None:
    shown = sheet(moves({UNASSIGNED: by_topic([("orders", 0)])}, None, [("orders", 1)]), {}, View.AFTER, 80)
    assert len({row.key for row in shown.rows}) == 2
    assert _lines(shown) == {f"! {UNASSIGNED}": "\u00b7 \u25cb".rjust(4), UNASSIGNED: "\u25a0 \u00b7".rjust(4)}


def test_columns_that_do_not_fit_become_ranges() -> None:
    change = moves(dealt(3, 100), None)
    assert not sheet(change, {}, View.AFTER, 150).is_folded
    assert sheet(change, {}, View.AFTER, 80).is_folded
    assert not sheet(change, {}, View.AFTER, 80, folded=False).is_folded
    assert sheet(change, {}, View.AFTER, 500, folded=True).is_folded


def test_ranges_have_a_column_a_topic() -> None:
    shown = sheet(moves(AFTER, BEFORE), {}, View.BOTH, 80, folded=True)
    assert _lines(shown)["a"].split() == ["7", "(+1)", "0-5", f"{GAINED}9"]
    assert _lines(shown)["- c"].split() == ["0", "(-3)", f"{LOST}9-11"]
    header = "".join(text for text, _ in shown.header(0)[1])
    assert _lines(shown)["b"].index(" 0", 10) + 1 == header.index("payments")


def test_topics_that_do_not_fit_as_columns_follow_each_other_by_name() -> None:
    many = {"a": by_topic([(f"topic-{number:02}", 0) for number in range(40)])}
    line = _lines(sheet(moves(many), {}, View.AFTER, 80, folded=True))["a"]
    assert line.split()[:5] == ["40", "topic-00", "0", "topic-01", "0"]


def test_a_topic_keeps_its_name_while_its_columns_are_seen() -> None:
    shown = sheet(moves(dealt(3, 300)), {}, View.AFTER, 80, folded=False)
    topics = "".join(text for text, _ in shown.header(120)[0])
    assert topics[120:].startswith("orders ")


@given(ASSIGNMENTS, st.none() | ASSIGNMENTS, st.sampled_from(View), st.integers(30, 120), st.none() | st.booleans())
def test_no_line_is_wider_than_the_sheet(
    after: Assignment, before: Assignment | None, view: View, room: int, folded: bool | None
) -> None:
    shown = sheet(moves(after, before), {}, view, room, folded)
    lines = ["".join(text for text, _ in shown.body(row)).rstrip() for row in shown.rows]
    assert all(cell_len(line) <= shown.width for line in lines)
    assert len({row.key for row in shown.rows}) == len(shown.rows)


@given(ASSIGNMENTS, ASSIGNMENTS)
def test_each_partition_is_in_the_rows_of_its_members_or_in_that_of_the_unassigned(
    after: Assignment, before: Assignment
) -> None:
    change = moves(after, before)
    for view, owners in ((View.AFTER, change.owners_after), (View.BEFORE, change.owners_before or {})):
        rows = sheet(change, {}, view, 80).rows
        for partition in change.partitions:
            having = {row.member for row in rows if row.fault != TWICE and partition in fate(change, row, view)}
            assert having == (owners.get(partition) or {None})


# ---- the pane


def run(scene: Callable[..., Awaitable[None]], pane: AssignmentPane, size: tuple[int, int] = (80, 24)) -> None:
    async def play() -> None:
        app = Host(pane)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await scene(pilot, pane)

    asyncio.run(play())


def _pane(after: Assignment | None = AFTER, before: Assignment | None = BEFORE, **more: object) -> AssignmentPane:
    pane = AssignmentPane()
    pane.show(after, before, **more)  # type: ignore[arg-type]
    return pane


def _screen(pane: AssignmentPane) -> str:
    return "\n".join("".join(segment.text for segment in line) for line in pane.screen._compositor.render_strips())


def _grid(pane: AssignmentPane) -> AssignmentGrid:
    return pane.query_one(AssignmentGrid)


def test_v_goes_from_both_to_after_to_before() -> None:
    async def scene(pilot, pane) -> None:
        assert LOST in _screen(pane)
        seen = []
        for _ in range(3):
            await pilot.press("v")
            seen.append((pane.view, "- c" in _screen(pane), "  d " in _screen(pane), "  c " in _screen(pane)))
        assert seen == [
            (View.AFTER, False, True, False),
            (View.BEFORE, False, False, True),
            (View.BOTH, True, False, False),
        ]

    run(scene, _pane())


def test_without_a_before_v_changes_nothing() -> None:
    async def scene(pilot, pane) -> None:
        before = _screen(pane)
        await pilot.press("v")
        assert _screen(pane) == before
        assert pane.view is View.AFTER

    run(scene, _pane(before=None))


def test_f_folds_and_unfolds() -> None:
    async def scene(pilot, pane) -> None:
        await pilot.press("f")
        assert "0-5" in _screen(pane).split("orders", 2)[1]
        await pilot.press("f")
        assert "0  1  2" in _screen(pane)

    run(scene, _pane())


@pytest.mark.parametrize(("right", "left"), [("greater_than_sign", "less_than_sign"), ("shift+right", "shift+left")])
def test_columns_go_sideways_and_stop_at_the_ends(right, left) -> None:
    async def scene(pilot, pane) -> None:
        await pilot.press("f")
        assert "more >" in _screen(pane)
        first = _screen(pane)
        await pilot.press(left)
        assert _screen(pane) == first
        await pilot.press(*[right] * 30)
        assert "290" in _screen(pane)
        assert "more >" not in _screen(pane)
        assert "orders" in _screen(pane)
        await pilot.press(*[left] * 30)
        assert _screen(pane) == first

    run(scene, _pane(dealt(4, 300), None))


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (["j", "j", "k"], 1),
        (["down", "down", "up"], 1),
        (["G"], 39),
        (["end"], 39),
        (["G", "g"], 0),
        (["end", "home"], 0),
        (["pagedown"], 19),
        (["ctrl+f", "ctrl+b"], 0),
        (["pagedown", "pageup"], 0),
        (["ctrl+d"], 10),
        (["ctrl+d", "ctrl+u"], 0),
        (["k"], 0),
    ],
)
def test_the_cursor_goes_as_in_a_table(keys, place) -> None:
    async def scene(pilot, pane) -> None:
        await pilot.press(*keys)
        member = f"worker-{place:02}"
        assert _grid(pane).cursor_row.member.startswith(member)
        assert f"\u203a   {member}" in _screen(pane)

    run(scene, _pane(dealt(40, 80), None))


def test_a_click_puts_the_cursor() -> None:
    async def scene(pilot, pane) -> None:
        await pilot.click(AssignmentGrid, offset=(5, 4))
        assert _grid(pane).cursor_row.member == "b"

    run(scene, _pane(assigned(a="orders:0", m="orders:1", b="orders:2"), None, names={"m": "a2", "b": "a3"}))


def test_the_row_of_the_cursor_is_told_in_words() -> None:
    async def scene(pilot, pane) -> None:
        await pilot.press("j")
        assert f"alpha: 7 (+1) \u00b7 orders 0-5 {GAINED}9" in _screen(pane)

    run(scene, _pane(names={"a": "alpha"}))


def test_another_look_moves_neither_cursor_nor_columns() -> None:
    async def scene(pilot, pane) -> None:
        await pilot.press("f", "greater_than_sign", "j", "j")
        before = _screen(pane)
        pane.show(dealt(4, 300), names={}, title="Assignment")
        await pilot.pause()
        assert _screen(pane) == before
        after = {member: some for member, some in dealt(4, 300).items() if not member.startswith("worker-00")}
        pane.show(after, title="Assignment")
        await pilot.pause()
        assert _grid(pane).cursor_row.member.startswith("worker-02")

    run(scene, _pane(dealt(4, 300), None))


def test_what_is_not_known_is_a_sentence_until_it_is() -> None:
    async def scene(pilot, pane) -> None:
        assert "Nobody told." in _screen(pane)
        assert "MEMBER" not in _screen(pane)
        pane.show(AFTER, BEFORE)
        await pilot.pause()
        assert "Nobody told." not in _screen(pane)
        assert "MEMBER" in _screen(pane)

    run(scene, _pane(None, None, reason="Nobody told."))


def test_names_never_reach_the_terminal_as_commands() -> None:
    async def scene(pilot, pane) -> None:
        for _ in range(2):
            screen = _screen(pane)
            assert "\x1b" not in screen
            assert "\u202e" not in screen
            assert "\\x1b[2J" in screen
            assert "[bold]x[/bold]" in screen
            await pilot.press("f")

    hostile = assigned(**{"\x1b[2J": "[bold]x[/bold]\u202e:0-1"})
    run(scene, _pane(hostile, None, title="\x1b[2J", partitions=[("\x07", 0)]))


def test_hundreds_of_members_and_partitions_are_no_burden() -> None:
    async def scene(pilot, pane) -> None:
        await pilot.press("f", "G")
        assert "worker-299" in _screen(pane) or "worker-99" in _screen(pane)

    run(scene, _pane(dealt(300, 900), dealt(300, 900, skip=frozenset({3}))))
