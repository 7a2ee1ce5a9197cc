"""What a rebalance changed, as lines of text: partitions by what became of them, in columns and in ranges."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.groups import TopicPartitions, by_topic
from kgctl.model.topic_partition import TopicPartition, ranges
from kgctl.model.watched import Assignment
from kgctl.tui.widgets.assignment.matrix import Sheet, View, sheet
from kgctl.tui.widgets.assignment.moves import in_words, moves
from tests.kgctl.tui.panes import assigned

ORDERS = [("orders", number) for number in range(8)]
BEFORE = assigned(a="orders:0-2", b="orders:3-4", c="orders:5-6")
AFTER = assigned(a="orders:0-2,5", b="orders:3", d="orders:4")  # c left with 6, d came
NAMES = {"a": "worker-a", "b": "worker-b", "c": "worker-c", "d": "worker-d"}
MEMBERS = st.sampled_from(["a", "b", "c", "d"])
PARTITIONS = st.tuples(st.sampled_from(["orders", "payments"]), st.integers(0, 15))
ASSIGNMENTS = st.dictionaries(MEMBERS, st.frozensets(PARTITIONS, max_size=12).map(by_topic))


def orders(*numbers: int) -> frozenset[TopicPartition]:
    return frozenset(("orders", number) for number in numbers)


def having(assignment: Assignment, member: str) -> set[TopicPartition]:
    return {(entry.topic, number) for entry in assignment.get(member, ()) for number in entry.partitions}


def lines_of(shown: Sheet) -> dict[str, str]:
    """The text to the right of each label."""
    return {row.label[0]: "".join(text for text, _ in shown.body(row)).rstrip() for row in shown.rows}


# ---- comparison


def test_each_member_keeps_gains_and_loses_partitions() -> None:
    change = moves(AFTER, BEFORE)
    assert change.kept == {"a": orders(0, 1, 2), "b": orders(3), "c": orders(), "d": orders()}
    assert change.gained == {"a": orders(5), "b": orders(), "c": orders(), "d": orders(4)}
    assert change.lost == {"a": orders(), "b": orders(4), "c": orders(5, 6), "d": orders()}
    assert (change.joined, change.left) == ({"d"}, {"c"})


def test_each_partition_stays_moves_is_new_unassigned_or_doubled() -> None:
    change = moves(assigned(a="orders:0,1,3,4", b="orders:4"), assigned(a="orders:0,2,4", b="orders:1"), ORDERS[:6])
    assert change.stay == orders(0)
    assert change.moved == orders(1)
    assert change.new == orders(3)
    assert change.unassigned == orders(2, 5)
    assert change.doubled == orders(4)


def test_a_partition_that_one_of_two_owners_keeps_stays() -> None:
    change = moves(assigned(a="orders:0"), assigned(a="orders:0", b="orders:0"))
    assert (change.stay, change.lost["b"]) == (orders(0), orders(0))


def test_without_an_assignment_before_nothing_is_gained_or_lost() -> None:
    change = moves(AFTER, None, ORDERS)
    assert change.stay == orders(0, 1, 2, 3, 4, 5)
    assert change.unassigned == orders(6, 7)
    assert not any(change.gained.values())
    assert not any(change.lost.values())
    assert change.stickiness is None


@pytest.mark.parametrize(
    ("stay", "of", "stickiness"), [(0, 3, 0), (1, 3, 33), (2, 3, 66), (3, 3, 100), (999, 1000, 99)]
)
def test_stickiness_is_100_only_if_all_partitions_stay(stay: int, of: int, stickiness: int) -> None:
    before = {"a": (TopicPartitions("orders", tuple(range(of))),), "b": ()}
    after = {
        "a": (TopicPartitions("orders", tuple(range(stay))),),
        "b": (TopicPartitions("orders", tuple(range(stay, of))),),
    }
    assert moves(after, before).stickiness == stickiness


def test_stickiness_without_owned_partitions_is_unknown() -> None:
    assert moves(AFTER, assigned(a="")).stickiness is None


@pytest.mark.parametrize(
    ("after", "before", "text"),
    [
        (AFTER, BEFORE, "7 partitions: 4 stay, 2 move, 1 unassigned; stickiness 57 %"),
        (assigned(a="orders:0-1"), assigned(a="orders:0"), "2 partitions: 1 stays, 0 move, 1 new; stickiness 100 %"),
        (assigned(a="orders:0", b="orders:0"), None, "1 partition: 0 assigned to 2 members, 1 twice"),
        (assigned(a="orders:0"), None, "1 partition: 1 assigned to 1 member"),
        ({}, None, "0 partitions"),
    ],
)
def test_a_line_summarizes_the_comparison(after: Assignment, before: Assignment | None, text: str) -> None:
    assert in_words(moves(after, before)) == text


@given(ASSIGNMENTS, st.none() | ASSIGNMENTS, st.lists(PARTITIONS, max_size=5))
def test_every_partition_is_in_one_class_and_every_member_is_complete(
    after: Assignment, before: Assignment | None, reading: list[TopicPartition]
) -> None:
    change = moves(after, before, reading)
    fates = [change.stay, change.moved, change.new, change.unassigned, change.doubled]
    assert sorted(one for fate in fates for one in fate) == list(change.partitions)
    assert set(reading) <= set(change.partitions)
    was = after if before is None else before
    assert set(change.members) == {*after, *was}
    for member in change.members:
        assert change.kept[member] | change.gained[member] == having(after, member)
        assert change.kept[member] | change.lost[member] == having(was, member)
        assert not change.gained[member] & change.lost[member]
    had = {one for member in was for one in having(was, member)}
    assert change.stickiness is None or (change.stickiness == 100) == (had == change.stay)


@given(ASSIGNMENTS)
def test_equal_assignments_move_nothing(same: Assignment) -> None:
    change = moves(same, same)
    assert not change.moved
    assert not change.new
    assert not change.joined
    assert not change.left
    assert not any(change.gained.values())
    assert not any(change.lost.values())


# ---- ranges


@given(st.frozensets(st.integers(0, 300)))
def test_ranges_contain_each_number_once_in_as_few_parts_as_possible(numbers: frozenset[int]) -> None:
    parts = [part.split("-") for part in ranges(numbers).split(",") if part]
    spans = [(int(part[0]), int(part[-1])) for part in parts]
    assert [n for first, last in spans for n in range(first, last + 1)] == sorted(numbers)
    assert all(left[1] + 1 < right[0] for left, right in itertools.pairwise(spans))
    assert all(len(part) == 1 or int(part[0]) < int(part[1]) for part in parts)


def test_ranges_accept_unsorted_and_repeated_numbers() -> None:
    assert ranges([14, 3, 1, 2, 2, 0]) == "0-3,14"
    assert ranges([]) == ""


# ---- layout


def test_columns_have_signs_for_kept_gained_lost_and_unassigned() -> None:
    shown = sheet(moves(AFTER, BEFORE), NAMES, View.BOTH, 76)
    assert lines_of(shown) == {
        "! unassigned": " \u00b7 \u00b7 \u00b7 \u00b7 \u00b7 \u00b7 \u25cb",
        "  worker-a": " \u25a0 \u25a0 \u25a0 \u00b7 \u00b7 \u25b3 \u00b7",
        "  worker-b": " \u00b7 \u00b7 \u00b7 \u25a0 \u25bd \u00b7 \u00b7",
        "+ worker-d": " \u00b7 \u00b7 \u00b7 \u00b7 \u25b3 \u00b7 \u00b7",
        "- worker-c": " \u00b7 \u00b7 \u00b7 \u00b7 \u00b7 \u25bd \u25bd",
    }


def test_a_view_of_one_side_has_only_its_members() -> None:
    change = moves(AFTER, BEFORE)
    assert list(lines_of(sheet(change, NAMES, View.AFTER, 76))) == [
        "! unassigned", "  worker-a", "  worker-b", "  worker-d"
    ]  # fmt: skip
    assert lines_of(sheet(change, NAMES, View.BEFORE, 76)) == {
        "  worker-a": " \u25a0 \u25a0 \u25a0 \u00b7 \u00b7 \u00b7 \u00b7",
        "  worker-b": " \u00b7 \u00b7 \u00b7 \u25a0 \u25a0 \u00b7 \u00b7",
        "  worker-c": " \u00b7 \u00b7 \u00b7 \u00b7 \u00b7 \u25a0 \u25a0",
    }


def test_a_doubled_partition_shows_the_number_of_owners() -> None:
    crowd = {f"m{number:02}": (TopicPartitions("orders", (0, 1) if number < 3 else (0,)),) for number in range(12)}
    assert lines_of(sheet(moves(crowd), {}, View.AFTER, 76))["! assigned twice"] == " + 3"


def test_members_with_equal_labels_are_separate_rows() -> None:
    shown = sheet(moves(assigned(a="orders:0", b="orders:1")), {"a": "worker", "b": "worker"}, View.AFTER, 76)
    assert [row.label[0] for row in shown.rows] == ["  worker"] * 2
    bodies = ["".join(text for text, _ in shown.body(row)) for row in shown.rows]
    assert [body.strip() for body in bodies] == ["\u25a0 \u00b7", "\u00b7 \u25a0"]
    assert len({row.key for row in shown.rows}) == 2


def test_partitions_that_do_not_fit_as_columns_are_ranges() -> None:
    wide = moves(assigned(a="orders:0-59", b="orders:60-99"), assigned(a="orders:0-49", b="orders:50-99"))
    shown = sheet(wide, NAMES, View.BOTH, 60)
    assert shown.is_folded
    assert {label: line.split() for label, line in lines_of(shown).items()} == {
        "  worker-a": ["60", "(+10)", "0-49", "\u25b350-59"],
        "  worker-b": ["40", "(-10)", "60-99", "\u25bd50-59"],
    }
    assert not sheet(wide, NAMES, View.BOTH, 200).is_folded
    assert not sheet(wide, NAMES, View.BOTH, 60, False).is_folded
    assert sheet(wide, NAMES, View.BOTH, 400, True).is_folded


@given(ASSIGNMENTS, st.none() | ASSIGNMENTS, st.sampled_from(View), st.integers(20, 120), st.none() | st.booleans())
def test_columns_and_ranges_agree_and_keep_their_width(
    after: Assignment, before: Assignment | None, view: View, room: int, folded: bool | None
) -> None:
    shown = sheet(moves(after, before), {}, view, room, folded)
    for row in shown.rows:
        line = "".join(text for text, _ in shown.body(row))
        assert len(line.rstrip()) <= shown.width
        if not shown.is_folded and row.member is not None and view is not View.BOTH:
            side = after if view is View.AFTER or before is None else before
            assert line.count("\u25a0") == len(having(side, row.member))
    assert all(len("".join(text for text, _ in line).rstrip()) <= max(shown.width, 10) for line in shown.header(0))
