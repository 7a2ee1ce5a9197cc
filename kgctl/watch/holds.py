"""Sentences about open transactions that hold back readers."""

from __future__ import annotations

from kgctl.model.transactions import GroupHold, Hold
from kgctl.watch.figures import counted, span


def sentence(hold: Hold) -> str:
    return (
        f"read_committed readers of {hold.partition} wait at offset {hold.last_stable_offset}: "
        f"{counted(hold.records, 'record')}{_since(hold)}, because of {_whom(hold)}."
    )


def group_sentence(one: GroupHold) -> str:
    held = min(one.lag, one.hold.records)
    return (
        f"{held:,} of the {counted(one.lag, 'record')} that group '{one.group}' lags in {one.hold.partition} are held"
        f"{_since(one.hold)}, by {_whom(one.hold)}; read_committed consumers wait for its end."
    )


def _since(hold: Hold) -> str:
    return "" if hold.age_ms is None else f", for {span(hold.age_ms / 1000)}"


def _whom(hold: Hold) -> str:
    if hold.transactional_id is not None:
        return f"the open transaction of transactional id '{hold.transactional_id}'"
    if hold.producer_id is not None:
        return f"an open transaction of producer id {hold.producer_id}, whose transactional id is not known"
    return "an open transaction"
