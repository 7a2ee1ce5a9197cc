"""`kgctl groups snapshot`: the committed offsets of groups, as rows or as a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import KgctlError, NotFound
from kgctl.commands.groups.selection import Groups, Match, selected
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import write_document
from kgctl.commands.shared.out_files import Overwrite, check_out
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.journal.documents import as_bytes
from kgctl.journal.keeping import now_ms
from kgctl.journal.making import snapshot_of
from kgctl.model.failure import RowError
from kgctl.model.groups import CLASSIC, CONSUMER, SHARE
from kgctl.model.plans import Snapshot, SnapshotRow, StoredGroup
from kgctl.render import note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

KIND = "group-snapshot"
EPILOG = examples(
    "kgctl groups snapshot orders payments --out before.json",
    "kgctl groups snapshot --match 'etl-.*' --out etl.json",
    "kgctl groups snapshot --all -o json",
)


@shows(KIND)
@reads
def snapshot(
    ctx: typer.Context,
    groups: Groups = None,
    match: Match = None,
    everything: Annotated[bool, typer.Option("--all", help="All groups that the cluster lists.")] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write a file for `groups restore` and `groups diff`; - is stdout."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Show or save the committed offsets of groups.

    With metadata, leader epochs, where the logs begin and end, and the times of the records that the groups would read next,
    with which `groups restore` finds the same place in another cluster.
    """
    if out not in (None, "-"):
        check_out(out, "--out", overwrite=overwrite)
    selection = selected(ctx, groups, match, everything, types=(CLASSIC, CONSUMER, SHARE))
    with settings(ctx).admin() as admin:
        found, errors = take(admin, selection.groups(admin), must_exist=True)
    errors = [*selection.errors, *errors]
    if out is None:
        settings(ctx).show(rows_of(found.groups), kind=KIND, errors=errors)
    elif found.groups:
        write_document(out, as_bytes(found))
        count = sum(len(group.offsets) for group in found.groups)
        if out != "-":
            groups_written = "1 group" if len(found.groups) == 1 else f"{len(found.groups)} groups"
            note(f"{groups_written} with {count} committed offsets written to {out}.")
    unknown = sum(_lacks_time(group) for group in found.groups)
    if unknown:
        note(f"The time of the next record is not known for {unknown} offsets: --by timestamp cannot restore them.")
    conclude(errors, len(errors) + len(found.groups))


def take(admin: Admin, names: Sequence[str], *, must_exist: bool) -> tuple[Snapshot, list[RowError]]:
    """The groups as they are, and the errors of those that cannot be read, or with `must_exist` do not exist."""
    moment, cluster_id = now_ms(), admin.cluster_id()
    known: list[StoredGroup] = []
    errors: list[RowError] = []
    for name, found in admin.group_states(names).items():
        if isinstance(found, KgctlError):
            errors.append(found.as_row())
        elif must_exist and found.state is None:
            errors.append(NotFound(f"Consumer group '{name}' does not exist.").as_row())
        else:
            known.append(found)
    return snapshot_of(cluster_id, moment, admin.with_logs(known)), errors


def rows_of(groups: Iterable[StoredGroup]) -> list[SnapshotRow]:
    rows = []
    for group in groups:
        head = group.group, group.state, group.type, len(group.members)
        rows += [
            SnapshotRow(
                *head,
                one.topic,
                one.partition,
                one.offset,
                one.leader_epoch,
                one.metadata,
                one.log_start,
                one.log_end,
                one.timestamp,
            )
            for one in group.offsets
        ] or [SnapshotRow(*head)]
    return rows


def _lacks_time(group: StoredGroup) -> int:
    return sum(one.timestamp is None and (one.log_end is None or one.offset < one.log_end) for one in group.offsets)
