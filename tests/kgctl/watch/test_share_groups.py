"""Verdicts about share groups (KIP-932): their start offsets show progress, and several members read the same partition."""

from __future__ import annotations

import pytest

from kgctl.model.groups import GroupDescription
from kgctl.model.health import Health
from kgctl.watch.groups import GroupsWatch
from tests.kgctl.watch.snapshots import group, member, partition, snapshot

TWO = (member("c-1", [0, 1]), member("c-2", [0]))


def share(*offsets: tuple[int | None, int], members: bool = True) -> GroupDescription:
    """A share group with the start offset and the log end of each partition."""
    rows = [partition(number, start, end, None) for number, (start, end) in enumerate(offsets)]
    return group("Stable" if members else "Empty", TWO if members else (), rows, type="Share")


@pytest.mark.parametrize(
    ("first", "last", "seconds", "expected", "reason"),
    [
        (share((5, 5), (3, 3)), share((7, 7), (3, 3)), 10, Health.OK, "no lag"),
        (
            share((5, 9), (3, 3)),
            share((5, 9), (3, 3)),
            92,
            Health.STALLED,
            "orders 0 (read by 2 members): start offset has not moved for 92 s, lag 4",
        ),
        (share((5, 9)), share((5, 9)), 12, None, "judging 12/30 s: lag 4, whether it grows is not known yet"),
        (share((5, 9)), share((5, 99)), 91, Health.STALLED, "orders 0 (read by 2 members): start offset has not moved"),
        (
            share((5, 9), members=False),
            share((5, 9), members=False),
            92,
            Health.STOPPED,
            "no members for at least 92 s, lag 4",
        ),
        (share((9, 9)), share((5, 9)), 2, Health.REWOUND, "orders 0 went back from 9 to 5"),
        (share((12, 9)), share((12, 9)), 2, None, "orders 0: start offset 12, but the log ends at 9"),
        # Where it begins depends on its config and on the records that are there then.
        (share((None, 9)), share((None, 9)), 200, None, "no member has fetched yet, so there is no start offset"),
        (share((None, 9), members=False), share((None, 9), members=False), 9, None, "no members and no start offset"),
        (share(), share(), 9, None, "it has no start offsets, so the lag is not known"),
    ],
)
def test_the_verdict_about_a_share_group(
    first: GroupDescription, last: GroupDescription, seconds: float, expected: Health | None, reason: str
) -> None:
    watch = GroupsWatch()
    (row,) = watch.add(snapshot(0, first))
    at_s = 2.0
    while at_s < seconds:
        watch.add(snapshot(at_s, last if first == last else first))
        at_s += 2
    (row,) = watch.add(snapshot(seconds, last))
    assert row.health is expected, row.health_reason
    assert row.health_reason.startswith(reason)
    assert "commit" not in row.health_reason
