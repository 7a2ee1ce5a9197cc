"""`kgctl producers`: the producers that partitions remember."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.client.admin.reset_input import topic_partitions
from kgctl.client.net.errors import BadValue
from kgctl.commands.shared.arguments import not_empty
from kgctl.commands.shared.classic import option
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.commands.transactions.holds import note_holds
from kgctl.model.topic_partition import TopicPartition

producers_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Show the producers that partitions remember."
)


@producers_app.callback()
def _producers() -> None: ...


@producers_app.command(
    epilog=examples(
        "kgctl producers describe orders:0",
        "kgctl producers describe orders:0,1 payments:2 -o json",
        "kgctl producers describe orders:0 --broker-id 2",
    )
)
@shows("producers")
@reads
def describe(
    ctx: typer.Context,
    partitions: Annotated[
        list[str], typer.Argument(metavar="TOPIC:P[,...]...", show_default=False, callback=not_empty)
    ],
    broker_id: Annotated[
        int | None,
        typer.Option("--broker-id", metavar="N", help="Ask this broker, which has a replica. [default: the leader]"),
    ] = None,
) -> None:
    """Show idempotent and transactional producers of partitions.

    START-OFFSET is the first offset of a producer's open transaction; read_committed readers do not pass the lowest one.
    A sentence for each partition where they wait goes to stderr.
    """
    wanted = [key for text in partitions for key in _partitions(text)]
    for key in wanted:
        named = ["--topic", key.topic, "--partition", str(key.partition), *option("--broker-id", broker_id)]
        settings(ctx).explain_as("kafka-transactions.sh", "describe-producers", *named)
    with settings(ctx).admin() as admin:
        rows = admin.describe_producers(wanted, broker_id)
        waiting = sorted({TopicPartition(row.topic, row.partition) for row in rows if row.start_offset is not None})
        held = admin.holds(waiting)
    settings(ctx).show(rows, kind="producers")
    note_holds([held[key] for key in sorted(held)])
    conclude((row.error for row in rows), len(wanted))


def _partitions(text: str) -> list[TopicPartition]:
    try:
        topic, numbers = topic_partitions(text)
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint="'TOPIC:P'") from None
    if not numbers:
        raise typer.BadParameter(f"{text!r} names no partition, as in orders:0.", param_hint="'TOPIC:P'")
    return [TopicPartition(topic, number) for number in numbers]
