"""`kgctl transactions`: list and describe transactions, find hanging ones, abort."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from kgctl.commands.shared.arguments import named, not_empty
from kgctl.commands.shared.classic import given_options, option
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.commands.transactions.aborts import EPILOG as ABORT_EPILOG
from kgctl.commands.transactions.aborts import abort
from kgctl.commands.transactions.holds import note_holds
from kgctl.model.transactions import STATES, HangingTransaction
from kgctl.render import note
from kgctl.watch.figures import counted

transactions_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List, describe and abort transactions, find hanging ones."
)


@transactions_app.command(
    "list",
    epilog=examples(
        "kgctl transactions list",
        "kgctl transactions list --older-than 60",
        "kgctl transactions list --state Ongoing --id-pattern 'orders-.*' -o json",
    ),
)
@shows("transactions")
@reads
def list_transactions(
    ctx: typer.Context,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE[,...]", help="Only ids in these states. [default: all]")
    ] = None,
    producer_id: Annotated[
        list[int] | None,
        typer.Option("--producer-id", min=0, metavar="N", help="Only the id of this producer; repeatable."),
    ] = None,
    older_than: Annotated[
        float | None,
        typer.Option("--older-than", min=0, metavar="SECONDS", help="Only transactions open for longer than this."),
    ] = None,
    id_pattern: Annotated[
        str | None,
        typer.Option(
            "--id-pattern",
            "--transactional-id-pattern",
            metavar="REGEX",
            help="Only ids that match this expression as a whole.",
        ),
    ] = None,
) -> None:
    """List transactional ids and their open transactions.

    If the cluster has ACLs, these are the ids that you may describe.
    """
    _check_pattern(id_pattern)
    older_than_ms = None if older_than is None else int(older_than * 1000)
    states = named(state, STATES, "--state")
    filters = [*option("--duration-filter", older_than_ms), *option("--transactional-id-pattern", id_pattern)]
    settings(ctx).explain_as("kafka-transactions.sh", "list", *filters)
    with settings(ctx).admin() as admin:
        listed = admin.list_transactions(states, producer_id or (), older_than_ms, id_pattern)
    settings(ctx).show(listed.rows, kind="transactions", errors=listed.errors)
    conclude(listed.errors, len(listed.errors) + 1)


@transactions_app.command(
    epilog=examples(
        "kgctl transactions describe payments-1",
        "kgctl transactions describe payments-1 payments-2 --partitions",
        "kgctl transactions describe payments-1 -o json",
    )
)
@shows("transaction-states", "transaction-partitions")
@reads
def describe(
    ctx: typer.Context,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", show_default=False, callback=not_empty)],
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Show the partitions of open transactions, and who waits there.")
    ] = False,
) -> None:
    """Show transactions: producer, state, age, partitions.

    WAITING counts the records from the transaction's first one to the end of the log: read_committed readers do not see
    them before the transaction ends. A sentence for each partition where they wait goes to stderr.
    """
    for name in ids:
        settings(ctx).explain_as("kafka-transactions.sh", "describe", "--transactional-id", name)
    with settings(ctx).admin() as admin:
        rows = admin.describe_transactions(ids)
        held = admin.holds(sorted({key for row in rows if row.is_open for key in row.topic_partitions()}))
        below = admin.transaction_partitions(rows) if partitions else []
    if partitions:
        settings(ctx).show(below, kind="transaction-partitions")
    else:
        settings(ctx).show(rows, kind="transaction-states")
    note_holds([held[key] for key in sorted(held)])
    conclude([*(row.error for row in rows), *(row.error for row in below)], len(rows))


@transactions_app.command(
    "find-hanging",
    epilog=examples(
        "kgctl transactions find-hanging",
        "kgctl transactions find-hanging --topic orders --partition 0",
        "kgctl transactions find-hanging --broker-id 1 --max-transaction-timeout 60",
    ),
)
@shows("hanging-transactions")
@reads
def find_hanging(
    ctx: typer.Context,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="TOPIC", callback=not_empty, help="Topic to search; repeatable. [default: all]"
        ),
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", min=0, metavar="N", help="Search this partition of --topic; repeatable."),
    ] = None,
    broker_id: Annotated[
        int | None,
        typer.Option("--broker-id", metavar="N", help="Search the replicas of this broker. [default: all leaders]"),
    ] = None,
    max_transaction_timeout: Annotated[
        int,
        typer.Option(
            "--max-transaction-timeout", min=0, metavar="MINUTES", help="Longest transaction timeout of any producer."
        ),
    ] = 15,
) -> None:
    """Find open transactions that no coordinator will end.

    read_committed readers and compaction stop before such a transaction until somebody aborts it. Searches partitions for
    producers whose last transactional record is older than --max-transaction-timeout, and asks the coordinators whether
    they know the transaction. You need DESCRIBE on all transactional ids: one that you may not see looks unknown.
    """
    if partition and len(topic or ()) != 1:
        raise typer.BadParameter("needs one --topic.", param_hint="'--partition'")
    where = given_options(ctx, "topic", "partition", "broker_id", "max_transaction_timeout")
    settings(ctx).explain_as("kafka-transactions.sh", "find-hanging", *where)
    with settings(ctx).admin() as admin:
        rows = admin.find_hanging_transactions(max_transaction_timeout * 60_000, topic, partition, broker_id)
    settings(ctx).show(rows, kind="hanging-transactions")
    found = [row for row in rows if row.error is None]
    note(f"Found {counted(len(found), 'hanging transaction')}.")
    _advise(found)
    conclude((row.error for row in rows), len(rows))


transactions_app.command("abort", epilog=ABORT_EPILOG)(abort)


def _advise(found: Sequence[HangingTransaction]) -> None:
    if found:
        one = found[0]
        note(
            f"To abort one: kgctl transactions abort --topic {one.topic} --partition {one.partition} "
            f"--start-offset {one.start_offset}"
        )


def _check_pattern(pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise typer.BadParameter(f"not a regular expression: {error}.", param_hint="'--id-pattern'") from None
