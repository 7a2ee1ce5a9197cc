"""The transaction under the cursor: what it holds, who waits for it, and the command that ends it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from kgctl.model.transactions import TransactionPartition
from kgctl.model.watched_transactions import HANGING, OVERDUE, OpenTransaction, WaitingGroup
from kgctl.tui import cells
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.command_line import abort_in_partition, abort_transaction, line
from kgctl.tui.widgets.text.entries import Entry
from kgctl.watch.figures import counted

NONE = (
    "A transaction holds back read_committed readers from its first record on, in each of its partitions, until its "
    "producer or its coordinator ends it. Open ones appear here."
)
NO_GROUPS = "No known group waits for it."
TOPIC_WIDTH, NUMBER_WIDTH, GROUP_WIDTH = 40, 14, 36
END = "To end it   "


def detail(row: OpenTransaction | None, cluster: ClusterLabel) -> list[Entry]:
    if row is None:
        return [Entry(NONE, style="$text-muted")]
    found = [Entry(_sentence(row)), Entry(_effect(row), style="$text-muted")]
    found += [Entry(command(row, cluster), Content.styled(END, "bold $primary"), "bold"), Entry("")]
    found += _partitions(row.partitions)
    found += [Entry(""), *_groups(row.groups)]
    return found


def command(row: OpenTransaction, cluster: ClusterLabel) -> str:
    """The command that aborts it; without --execute it only shows what it would do."""
    if row.transactional_id is not None:
        return line(abort_transaction(cluster, row.transactional_id))
    (one,) = row.partitions
    return line(abort_in_partition(cluster, one.topic or "", one.partition or 0, one.start_offset or 0))


def _sentence(row: OpenTransaction) -> str:
    age = cells.duration(None if row.age_ms is None else row.age_ms / 1000)
    limit = cells.duration(None if row.timeout_ms is None else row.timeout_ms / 1000)
    who = f"producer {row.producer_id} with epoch {row.producer_epoch}"
    if row.state == HANGING:
        return f"Hanging: the last record of {who} is {age} old, and no coordinator knows the transaction."
    of = f", coordinator broker {row.coordinator_id}" if row.coordinator_id is not None else ""
    if row.state == OVERDUE:
        return f"Open for {age}, longer than its timeout of {limit}: its coordinator should have aborted it; {who}{of}."
    return f"{cells.name(row.state)} for {age}, its coordinator aborts it after {limit}; {who}{of}."


def _effect(row: OpenTransaction) -> str:
    if row.transactional_id is None:
        return "Nothing ends it by itself. The command writes an abort marker into this partition."
    return "The command aborts it in all partitions and fences its producer."


def _partitions(rows: Sequence[TransactionPartition]) -> list[Entry]:
    if not rows:
        return [Entry("It has no partitions yet, or only offsets of groups.", style="$text-muted")]
    width = min(TOPIC_WIDTH, max(len("PARTITIONS 000"), *(len(cells.name(row.topic)) + 1 for row in rows)))
    titles = ("P", "FIRST OFFSET", "STABLE UNTIL", "END", "WAITING")
    head = cells.fitted(f"PARTITIONS {len(rows):,}", width) + _numbers(titles)
    found = [Entry("", Content.styled(head, "bold $text-muted"))]
    for row in rows:
        values = (row.partition, row.start_offset, row.last_stable_offset, row.log_end_offset, row.waiting_records)
        texts = cells.fitted(cells.name(row.topic), width) + _numbers([cells.count(value) for value in values])
        found.append(Entry(cells.name(row.error.message) if row.error else "", Content(texts + "  ")))
    return found


def _numbers(texts: Sequence[str]) -> str:
    first, *others = texts
    return f"{first:>6}" + "".join(f"{text:>{NUMBER_WIDTH}}" for text in others)


def _groups(groups: Sequence[WaitingGroup]) -> list[Entry]:
    if not groups:
        return [Entry(NO_GROUPS, style="$text-muted")]
    width = min(GROUP_WIDTH, max(len("GROUPS BEHIND IT 000"), *(len(cells.name(one.group)) + 1 for one in groups)))
    title = f"GROUPS BEHIND IT {len({one.group for one in groups}):,}"
    head = f"{cells.fitted(title, width)}{'LAG':>{NUMBER_WIDTH}}  PARTITION, IF THE GROUP READS COMMITTED"
    found = [Entry("", Content.styled(head, "bold $text-muted"))]
    for one in groups:
        state = "waits" if not one.before else f"can read {counted(one.before, 'offset')} before it waits"
        before = Content(f"{cells.fitted(cells.name(one.group), width)}{cells.count(one.lag):>{NUMBER_WIDTH}}  ")
        found.append(Entry(f"{cells.name(str(one.partition))}: {state}", before))
    return found
