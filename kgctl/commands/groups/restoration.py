"""What `kgctl groups restore` and `kgctl groups clone` have in common: groups get the offsets of others, with the checks of a reset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from broker.light_dataclasses import dataclass, replace
from kgctl.client.admin.reset_targets import Scope, Target
from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.commands.shared.journaling import keeper
from kgctl.journal.execution import Checked, execute, refusal, rows_of
from kgctl.journal.keeping import known_states, now_ms
from kgctl.journal.making import plan_of, snapshot_of
from kgctl.journal.resets import keep_drained
from kgctl.journal.undoing import MADE_AGAIN
from kgctl.model.changes import DONE, SKIPPED, ResetPlan
from kgctl.model.groups import SHARE, Committed
from kgctl.model.plans import OFFSETS, ChangeRow, GroupPlan, Move, StoredGroup, StoredMember, StoredOffset
from kgctl.model.topic_partition import TopicPartition
from kgctl.render import note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.commands.shared.settings import Settings
    from kgctl.model.failure import RowError

OFFSET, TIMESTAMP = "offset", "timestamp"
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="offset|timestamp",
        help="Same offsets, or the first records at or after the times of those that were next; the latter across clusters. "
        "[default: offset]",
    ),
]


def checked_by(value: str | None) -> str | None:
    if value not in (None, OFFSET, TIMESTAMP):
        raise typer.BadParameter(f"{value!r} is not one of offset, timestamp.", param_hint="'--by'")
    return value


def chosen_by(value: str | None, *, is_same_cluster: bool) -> str:
    """Raises Precondition where only the user can know that offsets mean the same."""
    if value is None and not is_same_cluster:
        raise Precondition(
            "the snapshot is of another cluster, where the same offset may be another record: add --by timestamp, or "
            "--by offset if both have the same records"
        )
    return value or OFFSET


@dataclass(frozen=True, slots=True)
class Restoration:
    """The groups under the names that they get. `taken_ms` is when they were read."""

    verb: str
    groups: Sequence[StoredGroup]
    by: str
    is_same_cluster: bool
    taken_ms: int
    drain: float | None

    def run(self, chosen: Settings, admin: Admin, *, is_executed: bool) -> list[ChangeRow]:
        """The steps, or with `is_executed` their outcome; a group that is refused does not stop the others."""
        targets, lost = self._targets(admin)
        names = [group.group for group in self.groups if targets[group.group].offsets]
        resets = {plan.group: plan for plan in admin.plan_resets(names, Scope(), targets)}
        epochs = admin.leader_epochs(sorted({one.key for group in self.groups for one in group.offsets}))
        checked = [
            self._checked(group, resets[group.group], epochs, lost) for group in self.groups if group.group in resets
        ]
        for one in checked:
            if one.is_good and one.plan.type == SHARE and one.plan.state is None:
                note(MADE_AGAIN.format(one.plan.group))
        if not is_executed:
            return [row for one in checked for row in rows_of([one])]
        return self._execute(chosen, admin, checked, resets, targets)

    def _targets(self, admin: Admin) -> tuple[dict[str, Target], dict[TopicPartition, KgctlError]]:
        if self.by == OFFSET:
            return {
                group.group: Target("file", offsets={one.key: one.offset for one in group.offsets})
                for group in self.groups
            }, {}
        wanted: dict[TopicPartition, set[int]] = {}
        for group in self.groups:
            for one in group.offsets:
                wanted.setdefault(one.key, set()).add(self._moment(one))
        places = admin.offsets_at(wanted)
        lost = {key: place for (key, _), place in places.items() if isinstance(place, KgctlError)}
        return {
            group.group: Target(
                "file",
                offsets={
                    one.key: 0 if isinstance(place := places[one.key, self._moment(one)], KgctlError) else place.offset
                    for one in group.offsets
                },
            )
            for group in self.groups
        }, lost

    def _moment(self, one: StoredOffset) -> int:
        """A group that had read all records continues with those written since."""
        return self.taken_ms if one.timestamp is None else one.timestamp

    def _checked(
        self,
        group: StoredGroup,
        reset: ResetPlan,
        epochs: Mapping[TopicPartition, int],
        lost: Mapping[TopicPartition, KgctlError],
    ) -> Checked:
        stored = group.committed()
        moves, errors = [], {}
        for row in reset.rows:
            assert row.partition is not None
            key = TopicPartition(row.topic, row.partition)
            move = Move(row.topic, row.partition, row.old_offset, row.new_offset, note=row.note)
            error = lost[key].as_row() if key in lost else row.error
            if error is None and group.type == SHARE and reset.type not in (SHARE, None):
                error = Precondition(
                    f"group '{group.group}' has the type {reset.type}, and the offsets are those of a share group"
                ).as_row()
            if (
                error is None
                and self.by == TIMESTAMP
                and stored[key].timestamp is None
                and self._is_unread(stored[key])
            ):
                error = Precondition(
                    f"{key}: the snapshot has no time of the record at offset {stored[key].offset}"
                ).as_row()
            if error is not None:
                errors[key] = error
            elif self.by == OFFSET and row.new_offset == stored[key].offset:
                epoch = stored[key].leader_epoch
                is_valid = self.is_same_cluster and epoch is not None and epoch <= epochs.get(key, -1)
                move = replace(move, leader_epoch=epoch if is_valid else None, metadata=stored[key].metadata)
            elif self.by == TIMESTAMP:
                move = replace(move, metadata=stored[key].metadata)
            moves.append(move)
        members = tuple(
            StoredMember(one.consumer_id or "", one.group_instance_id, one.host, one.client_id) for one in reset.members
        )
        kind = SHARE if group.type == SHARE and reset.state is None else reset.type
        plan = GroupPlan(group.group, OFFSETS, reset.state, kind, members, tuple(moves))
        refused = None if self.drain is not None else refusal(plan, drains=True)
        return Checked(plan, reset.error or refused, errors)

    def _is_unread(self, one: StoredOffset) -> bool:
        return one.log_end is None or one.offset < one.log_end

    def _execute(
        self,
        chosen: Settings,
        admin: Admin,
        checked: Sequence[Checked],
        resets: Mapping[str, ResetPlan],
        targets: Mapping[str, Target],
    ) -> list[ChangeRow]:
        good = [one for one in checked if one.is_good]
        refused = [row for one in checked if not one.is_good for row in rows_of([one])]
        refused = [row if row.error else replace(row, status=SKIPPED) for row in refused]
        if not good:
            return refused
        states = known_states(admin, [one.plan.group for one in good], execute=True) if chosen.is_journaled else {}
        moment = now_ms()
        plan = plan_of(self.verb, admin.cluster_id(), moment, (one.plan for one in good))
        drained = [one for one in good if one.plan.has_members]

        def act() -> tuple[list[ChangeRow], list[ResetPlan]]:
            rows = execute(admin, [one for one in good if one not in drained], None)
            done = [self._drain(admin, one.plan, resets[one.plan.group], targets) for one in drained]
            return rows + [row for one in done for row in _rows_of_reset(one)], done

        rows, _ = keeper(chosen).record(
            plan,
            snapshot_of(plan.cluster_id, moment, states.values()),
            act,
            lambda result: result[0],
            correct=lambda result, begun: keep_drained(result[1], begun),
        )
        order = {one.plan.group: place for place, one in enumerate(checked)}
        return sorted([*rows, *refused], key=lambda row: order[row.group])

    def _drain(self, admin: Admin, plan: GroupPlan, reset: ResetPlan, targets: Mapping[str, Target]) -> ResetPlan:
        assert self.drain is not None
        commits = {
            move.key: Committed(move.new_offset, move.leader_epoch, move.metadata)
            for move in plan.moves
            if move.new_offset is not None
        }
        try:
            return admin.drain_and_reset(
                reset, Scope(), targets[plan.group], seconds=self.drain, commits=commits, note=note
            )
        except KgctlError as error:
            return replace(reset, error=error.as_row())


def _rows_of_reset(done: ResetPlan) -> list[ChangeRow]:
    rows = []
    for row in done.rows:
        error: RowError | None = row.error or (done.error if row.status != DONE else None)
        change = ChangeRow(
            done.group, OFFSETS, row.topic, row.partition, None, row.old_offset, row.new_offset, row.delta, row.note
        )
        rows.append(replace(change, status="failed" if error else row.status, error=error))
    return rows
