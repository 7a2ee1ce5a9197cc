"""Sentences about offsets that wait for the end of a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.commands.shared.outcome import MOST_MESSAGES
from kgctl.model.groups import GroupDescription, PendingOffsets
from kgctl.render import note
from kgctl.watch.figures import counted

NAMED = 5


def note_pending(groups: Sequence[GroupDescription]) -> None:
    """One sentence for each group with pending offsets, and each transaction that has them."""
    sentences = [
        sentence(group.group, [row for row in group.pending if _whose(row) == whose])
        for group in groups
        for whose in dict.fromkeys(map(_whose, group.pending))
    ]
    for one in sentences[:MOST_MESSAGES]:
        note(one)
    if len(sentences) > MOST_MESSAGES:
        note(f"And {len(sentences) - MOST_MESSAGES} more transactions with pending offsets.")


def sentence(group: str, rows: Sequence[PendingOffsets]) -> str:
    places = [f"{row.topic}-{number}" for row in rows for number in row.partitions]
    where = ", ".join(places) if len(places) <= NAMED else counted(len(places), "partition")
    return (
        f"Warning: Group '{group}' has pending offsets for {where} in {_whom(rows[0])}; "
        "they are committed or dropped when it ends."
    )


def _whose(row: PendingOffsets) -> tuple[int | None, str | None]:
    return row.producer_id, row.transactional_id


def _whom(row: PendingOffsets) -> str:
    if row.transactional_id is not None:
        return f"the open transaction of transactional id '{row.transactional_id}'"
    if row.producer_id is not None:
        return f"an open transaction of producer id {row.producer_id}, whose transactional id is not known"
    return "an open transaction"
