"""The layout of the assignment grid: order of rows, headers, and completeness."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.groups import by_topic
from kgctl.model.watched import Assignment
from kgctl.tui.widgets.assignment.matrix import (
    GAINED,
    KEPT,
    LOST,
    NO_OWNER,
    NONE,
    TWICE,
    UNASSIGNED,
    Line,
    Sheet,
    View,
    sheet,
    signs_of,
)
from kgctl.tui.widgets.assignment.moves import moves
from tests.kgctl.tui.panes import assigned, dealt

BEFORE = assigned(a="orders:0-5", b="orders:6-8 payments:0", c="orders:9-11")
AFTER = assigned(a="orders:0-5,9", b="orders:6-8 payments:0", d="orders:10")
PARTITIONS = st.tuples(st.sampled_from(["orders", "payments"]), st.integers(min_value=0, max_value=5))
ASSIGNMENTS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]), st.lists(PARTITIONS, max_size=8).map(by_topic), max_size=4
)


def _text(line: Line) -> str:
    return "".join(text for text, _ in line)


def _lines(shown: Sheet) -> dict[str, str]:
    return {row.label[0].strip(): _text(shown.body(row)).rstrip() for row in shown.rows}


def test_a_sign_is_below_its_partition_number() -> None:
    shown = sheet(moves(AFTER, BEFORE), {}, View.BOTH, 100)
    topics, numbers = (_text(line) for line in shown.header(0))
    assert topics.split() == ["orders", "payments"]
    for number in range(12):
        at = numbers.index(f"{number:>2}") + 1
        assert _lines(shown)["a"].ljust(60)[at] == {9: GAINED}.get(number, KEPT if number < 6 else NONE)


def test_faults_come_first_and_former_members_last() -> None:
    faulty = moves(assigned(b="orders:0", z="orders:0"), assigned(a="orders:0-1"))
    labels = [row.label[0] for row in sheet(faulty, {}, View.BOTH, 80).rows]
    assert labels == [f"! {UNASSIGNED}", f"! {TWICE}", "+ b", "+ z", "- a"]


def test_a_member_named_unassigned_is_a_member() -> None:
    shown = sheet(moves({UNASSIGNED: by_topic([("orders", 0)])}, None, [("orders", 1)]), {}, View.AFTER, 80)
    assert len({row.key for row in shown.rows}) == 2
    assert _lines(shown) == {f"! {UNASSIGNED}": f" {NONE} {NO_OWNER}", UNASSIGNED: f" {KEPT} {NONE}"}


def test_ranges_have_one_aligned_column_per_topic() -> None:
    shown = sheet(moves(AFTER, BEFORE), {}, View.BOTH, 80, folded=True)
    lines, header = _lines(shown), _text(shown.header(0)[1])
    assert lines["a"].split() == ["7", "(+1)", "0-5", f"{GAINED}9"]
    assert lines["- c"].split() == ["0", "(-3)", f"{LOST}9-11"]
    assert lines["a"].index("0-5") == lines["b"].index("6-8") == header.index("orders")
    assert lines["b"].rindex("0") == header.index("payments")
    assert lines["a"].index("7") == lines["b"].index("4")


def test_topics_that_do_not_fit_as_columns_are_listed_by_name() -> None:
    many = {"a": by_topic([(f"topic-{number:02}", 0) for number in range(40)])}
    shown = sheet(moves(many), {}, View.AFTER, 80, folded=True)
    assert _lines(shown)["a"].split()[:5] == ["40", "topic-00", "0", "topic-01", "0"]


def test_a_topic_name_stays_visible_while_its_columns_are() -> None:
    shown = sheet(moves(dealt(3, 300)), {}, View.AFTER, 80, folded=False)
    assert _text(shown.header(120)[0])[120:].startswith("orders ")


@given(ASSIGNMENTS, ASSIGNMENTS)
def test_each_partition_is_in_the_rows_of_its_owners_or_unassigned(after: Assignment, before: Assignment) -> None:
    change = moves(after, before)
    for view, owners in ((View.AFTER, change.owners_after), (View.BEFORE, change.owners_before or {})):
        rows = sheet(change, {}, view, 80).rows
        for partition in change.partitions:
            having = {row.member for row in rows if row.fault != TWICE and partition in signs_of(change, row, view)}
            assert having == (owners.get(partition) or {None})
