"""How the panes of a group look: offsets and assignment, at three sizes, in all colours."""

from __future__ import annotations

import pytest

from kgctl.model.watched import WatchedPartition
from kgctl.tui.widgets.assignment import AssignmentPane
from kgctl.tui.widgets.offsets import OffsetsPane
from tests.kgctl.tui.panes import FAILED, UNCOMMITTED, Host, assigned, dealt, row

SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)
SIZES = [SMALL, MIDDLE, LARGE]
NAMES = {
    "a": "worker-1 3f2a9c01",
    "b": "worker-2 77aa01bc",
    "c": "worker-3 0de4f5a6 [shop-3]",
    "d": "worker-4 91bc2d3e",
}
AFTER = assigned(a="orders:0-2,6 payments:0", b="orders:3-5 payments:2-3", d="orders:7")
BEFORE = assigned(a="orders:0-2 payments:0-1", b="orders:3-5", c="orders:6-7 payments:2-3")
EMPTY = row(lag=0, lags=(0,) * 9, committed=10_200, eta_s=0.0)


def _partitions() -> list[WatchedPartition]:
    return [
        row(partition=0),
        row(partition=1, lag=0, lags=(40, 30, 9, 0, 0, 0, 0, 0), committed=10_200, eta_s=0.0, rate_in=0.4, rate_out=0.4),
        row(partition=2, lag=1_204_332, committed=8_999_990_000, log_end=9_001_194_332, rate_out=12.0, eta_s=None,
            lags=(900_000, 950_000, 1_000_000, 1_100_000, 1_204_332), client_id="worker-2"),
        row(partition=3, **FAILED),
        row(partition=4, **UNCOMMITTED),
        row(partition=10, lags=(1_200,) * 20, rate_in=0.0, rate_out=0.0, eta_s=None, client_id="worker-2"),
        row("payments.settlements.by-country", 0, client_id="a-client-with-a-rather-long-name"),
        row("\x1b[31mred[/b]\u202e", 0, client_id="[bold]x[/bold]\n", rate_in=None, rate_out=None, eta_s=None),
    ]  # fmt: skip


def _offsets(theme: str = "dark") -> Host[OffsetsPane]:
    return Host(OffsetsPane(), lambda pane: pane.show(_partitions()), theme)


def _moved(theme: str = "dark") -> Host[AssignmentPane]:
    return Host(
        AssignmentPane(),
        lambda pane: pane.show(AFTER, BEFORE, names=NAMES, title="Generation 7"),
        theme,
    )


def _large() -> Host[AssignmentPane]:
    after, before = dealt(40, 300, skip=frozenset({7})), dealt(40, 300, skip=frozenset({11}))
    names = {member: f"{member[:9]} {member[10:18]}" for member in {*after, *before}}
    return Host(AssignmentPane(), lambda pane: pane.show(after, before, names=names, title="Generation 12"))


@pytest.mark.parametrize("size", SIZES)
def test_offsets(snap_compare, size) -> None:
    assert snap_compare(_offsets(), terminal_size=size)


@pytest.mark.parametrize("theme", ["light", "contrast"])
def test_offsets_in_other_colours(snap_compare, theme) -> None:
    assert snap_compare(_offsets(theme), terminal_size=MIDDLE)


def test_offsets_without_colour(snap_compare, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(_offsets(), terminal_size=SMALL)


def test_offsets_sorted_by_lag_on_a_failed_partition(snap_compare) -> None:
    assert snap_compare(_offsets(), terminal_size=SMALL, press=["s", "s", "s", "G", "k"])


def test_no_offsets(snap_compare) -> None:
    assert snap_compare(Host(OffsetsPane()), terminal_size=SMALL)


def test_offsets_of_many_partitions(snap_compare) -> None:
    many = [row(partition=n, lag=n * 997 % 5_000, lags=tuple((n * k) % 50 for k in range(30))) for n in range(1_000)]
    assert snap_compare(Host(OffsetsPane(), lambda pane: pane.show(many)), terminal_size=MIDDLE, press=["G"])


@pytest.mark.parametrize("size", SIZES)
def test_an_assignment_before_and_after(snap_compare, size) -> None:
    assert snap_compare(_moved(), terminal_size=size)


@pytest.mark.parametrize("theme", ["light", "contrast"])
def test_an_assignment_in_other_colours(snap_compare, theme) -> None:
    assert snap_compare(_moved(theme), terminal_size=MIDDLE)


def test_an_assignment_without_colour(snap_compare, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(_moved(), terminal_size=SMALL)


@pytest.mark.parametrize("times", [1, 2])
def test_an_assignment_after_or_before(snap_compare, times) -> None:
    assert snap_compare(_moved(), terminal_size=SMALL, press=["v"] * times)


def test_an_assignment_in_ranges(snap_compare) -> None:
    assert snap_compare(_moved(), terminal_size=SMALL, press=["f", "j", "j"])


@pytest.mark.parametrize("size", SIZES)
def test_forty_members_and_three_hundred_partitions(snap_compare, size) -> None:
    assert snap_compare(_large(), terminal_size=size)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_three_hundred_columns_sideways(snap_compare, size) -> None:
    assert snap_compare(_large(), terminal_size=size, press=["f", "greater_than_sign", "G"])


def test_an_assignment_alone(snap_compare) -> None:
    pane = lambda pane: pane.show(AFTER, names=NAMES)  # noqa: E731
    assert snap_compare(Host(AssignmentPane(), pane), terminal_size=SMALL)


def test_faults_of_an_assignment(snap_compare) -> None:
    faulty = assigned(a="orders:0-2", b="orders:2-3", c="")
    fill = lambda pane: pane.show(faulty, assigned(a="orders:0-5"), names=NAMES, title="Generation 8")  # noqa: E731
    assert snap_compare(Host(AssignmentPane(), fill), terminal_size=SMALL)


def test_nothing_assigned(snap_compare) -> None:
    assert snap_compare(Host(AssignmentPane(), lambda pane: pane.show({})), terminal_size=SMALL)


def test_an_assignment_that_is_not_known(snap_compare) -> None:
    reason = "This cluster keeps no story of its groups: who had what in generation 6 was not seen."
    fill = lambda pane: pane.show(None, title="Generation 6", reason=reason)  # noqa: E731
    assert snap_compare(Host(AssignmentPane(), fill), terminal_size=SMALL)


def test_hostile_names_in_an_assignment(snap_compare) -> None:
    hostile = assigned(a="\x1b[2J[red]x\u202e:0-1 \u7d2f\u8a08:0-3", b="orders:0")
    names = {"a": "[bold]x[/bold]\x1b[31m", "b": "\u6771\u4eac-1"}
    fill = lambda pane: pane.show(hostile, names=names, title="[u]\x07")  # noqa: E731
    assert snap_compare(Host(AssignmentPane(), fill), terminal_size=SMALL)
