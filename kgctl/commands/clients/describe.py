"""`kgctl clients describe`: the metrics that clients pushed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.model.clients import ClientMetric
from kgctl.render import note

EPILOG = examples(
    "kgctl configs set client-metrics all metrics=* interval.ms=10000 --execute",
    "kgctl clients describe",
    "kgctl clients describe app-1 --metric org.apache.kafka.producer.",
    "kgctl clients describe app-1 -o json",
)


@shows("client-metrics")
@reads
def describe(
    ctx: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", show_default=False)] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="PREFIX", help="Only metrics whose names begin like this; repeatable."),
    ] = None,
) -> None:
    """Show the metrics that clients pushed last.

    Without ids, of all clients; an ID is a client id or the id of a client instance.

    Clients push the metrics that a client-metrics config subscribes to (KIP-714). The broker forgets a client that was
    silent for a minute and for three intervals. VALUE is the sum of a histogram, and with DELTA what was added since the
    push before.
    """
    with settings(ctx).admin() as admin:
        rows = admin.client_metrics(ids or [])
    shown = [row for row in rows if _is_wanted(row, metric)]
    settings(ctx).show(shown, kind="client-metrics")
    _note_silent(rows)
    conclude([row.error for row in shown], len(shown))


def _is_wanted(row: ClientMetric, prefixes: list[str] | None) -> bool:
    if row.metric is None:
        return row.error is not None
    return not prefixes or row.metric.startswith(tuple(prefixes))


def _note_silent(rows: Sequence[ClientMetric]) -> None:
    if not rows:
        note("No client has asked which metrics it should send.")
    silent = [row for row in rows if row.metric is None and row.error is None]
    unsubscribed = sum(not row.subscribed for row in silent)
    if unsubscribed:
        note(f"No client-metrics config matches {unsubscribed} of the clients: see `kgctl configs set client-metrics`.")
    for row in silent:
        if row.subscribed:
            name, seconds = row.client_id or row.client_instance_id, row.interval_ms / 1000
            note(f"Client {name} has pushed no metrics yet; it does so every {seconds:g} s.")
