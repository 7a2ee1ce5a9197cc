"""Prints sentences about open transactions that hold back readers."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.commands.shared.outcome import MOST_MESSAGES
from kgctl.model.transactions import GroupHold, Hold
from kgctl.render import note
from kgctl.watch.holds import group_sentence, sentence


def note_holds(found: Sequence[Hold]) -> None:
    """One sentence for each partition where read_committed readers wait."""
    _note_each([sentence(hold) for hold in found])


def note_group_holds(found: Sequence[GroupHold]) -> None:
    _note_each([f"Warning: {group_sentence(one)}" for one in found])


def _note_each(sentences: Sequence[str]) -> None:
    for one in sentences[:MOST_MESSAGES]:
        note(one)
    if len(sentences) > MOST_MESSAGES:
        note(f"And {len(sentences) - MOST_MESSAGES} more partitions.")
