"""What an event of a group's history says in a sentence."""

from __future__ import annotations

from kgctl.model.cluster_view import EventKind
from kgctl.model.history import FENCED, GroupEventRow
from kgctl.watch.group_events import of_history


def test_a_fenced_member_is_news() -> None:
    row = GroupEventRow(
        group="g",
        timestamp=1_000,
        generation=4,
        event=FENCED,
        cause=None,
        reason="a sent member epoch 9, not 4",
        prepare_ms=None,
        complete_ms=None,
        members=2,
        joined_count=0,
        left_count=0,
        partitions_moved=None,
        commits_rejected=0,
    )
    found = of_history(row)
    assert found is not None
    assert (found.kind, found.text) == (EventKind.MEMBER, "fenced: a sent member epoch 9, not 4")
