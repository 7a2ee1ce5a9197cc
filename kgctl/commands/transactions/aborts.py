"""`kgctl transactions abort`: the open transaction of a transactional id, or a hanging one in a partition."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.client.admin.aborts import HangingTarget
from kgctl.commands.shared.arguments import Execute, not_empty, only_one
from kgctl.commands.shared.classic import given_options
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.journal.items import transactions_aborted
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import TransactionAbort
from kgctl.render import note

EPILOG = examples(
    "kgctl transactions abort payments-1",
    "kgctl transactions abort payments-1 --execute",
    "kgctl transactions abort --topic orders --partition 0 --start-offset 17",
)


@shows("transaction-aborts")
@journaled
@changes(names=("ids", "topic"), when="execute")
def abort(
    ctx: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID...]", show_default=False, callback=not_empty)] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", metavar="TOPIC", callback=not_empty, help="Topic of a hanging transaction."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, metavar="N", help="Its partition; with --topic.")
    ] = None,
    start_offset: Annotated[
        int | None,
        typer.Option("--start-offset", min=0, metavar="N", help="Its first offset, as find-hanging shows it."),
    ] = None,
    producer_id: Annotated[
        int | None,
        typer.Option("--producer-id", min=0, metavar="N", help="Its producer, for brokers before Kafka 3.0."),
    ] = None,
    producer_epoch: Annotated[
        int | None, typer.Option("--producer-epoch", min=0, metavar="N", help="With --producer-id: its epoch.")
    ] = None,
    coordinator_epoch: Annotated[
        int | None,
        typer.Option("--coordinator-epoch", metavar="N", help="With --producer-id: the epoch of the coordinator."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Abort in the partition even if a coordinator knows the transaction."),
    ] = False,
    execute: Execute = False,
) -> None:
    """Abort open transactions, or a hanging one.

    With ID, the transactional id gets a new epoch: its coordinator aborts the transaction in all partitions, and the
    producer that is at work is fenced. This needs WRITE on the transactional id.

    With --topic and --partition, an abort marker ends the transaction in that partition alone: for one that no coordinator
    knows (see find-hanging). This needs ALTER on the cluster.
    """
    target = _target(ctx, ids, topic, partition, start_offset, producer_id, producer_epoch, coordinator_epoch)
    if force and target is None:
        raise typer.BadParameter("needs --topic and --partition.", param_hint="'--force'")
    if target is not None:
        where = given_options(ctx, "topic", "partition", "start_offset")
        settings(ctx).explain_as("kafka-transactions.sh", "abort", *where)
    with settings(ctx).admin() as admin:
        if target is None:
            rows = admin.plan_fencing(ids or ())
        else:
            rows = [admin.plan_abort_marker(target, force=force)]
        if execute:
            plan = rows
            rows = keep(
                settings(ctx),
                admin,
                "transactions abort",
                lambda: transactions_aborted(plan),
                lambda: admin.fence(plan) if target is None else [admin.write_abort_marker(plan[0])],
            )
    settings(ctx).show(rows, kind="transaction-aborts")
    for row in rows:
        if row.error is None:
            note(_effect(row, execute))
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))


def _target(
    ctx: typer.Context,
    ids: list[str] | None,
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> HangingTarget | None:
    only_one({"ID": ids, "--topic": topic})
    of_partition = {
        "--partition": partition,
        "--start-offset": start_offset,
        "--producer-id": producer_id,
        "--producer-epoch": producer_epoch,
        "--coordinator-epoch": coordinator_epoch,
    }
    if topic is None:
        for option, value in of_partition.items():
            if value is not None:
                raise typer.BadParameter("needs --topic.", param_hint=f"'{option}'")
        if not ids:
            ctx.fail("Name transactional ids, or a hanging transaction with --topic, --partition and --start-offset.")
        return None
    only_one({"--start-offset": start_offset is not None, "--producer-id": producer_id is not None})
    if partition is None or (start_offset is None and producer_id is None):
        ctx.fail("A hanging transaction needs --topic, --partition, and --start-offset or --producer-id.")
    if producer_id is not None and (producer_epoch is None or coordinator_epoch is None):
        raise typer.BadParameter("needs --producer-epoch and --coordinator-epoch.", param_hint="'--producer-id'")
    return HangingTarget(TopicPartition(topic, partition), start_offset, producer_id, producer_epoch, coordinator_epoch)


def _effect(row: TransactionAbort, execute: bool) -> str:
    """What the abort means for readers and for the producer."""
    if row.topic is not None:
        where, verb = f"{row.topic}-{row.partition}", "ended" if execute else "will end"
        return (
            f"An abort marker {verb} the transaction in {where}: read_committed readers skip its records, and a producer "
            "that still writes to it gets an error."
        )
    producer = "is" if execute else "will be"
    return (
        f"The producer of transactional id '{row.transactional_id}' {producer} fenced: its next request fails with "
        "PRODUCER_FENCED or INVALID_PRODUCER_EPOCH, none of its open transaction is committed, and it must restart."
    )
