"""`kgctl demo`: a guided tour on a temporary broker."""

from __future__ import annotations

import importlib.util
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.commands.shared.effects import local
from kgctl.commands.shared.help import examples

EPILOG = examples("kgctl demo", "kgctl demo transactions", "kgctl demo --pipelines --out report")


class TourName(StrEnum):
    GROUPS = "groups"
    TRANSACTIONS = "transactions"


class ClientMissing(KgctlError):
    """confluent-kafka, which the demo's consumers use, is not installed."""


@local
def demo(
    tour: Annotated[TourName, typer.Argument(metavar="[groups|transactions]", show_default=False)] = TourName.GROUPS,
    pipelines: Annotated[
        bool, typer.Option("--pipelines", help="Add a report made with Spark; takes half a minute longer.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="With --pipelines: folder for the report. [default: a new temporary folder]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Take a guided tour.

    The tour of groups, the default, starts a temporary broker and a group of real consumers, kills one of them, shows the
    rebalance, its history and the dashboard, and moves committed offsets.

    The tour of transactions starts a worker that reads orders and writes totals, kills it in the middle of a transaction,
    restarts it, and shows that each order is counted once. Both remove everything at the end.
    """
    if importlib.util.find_spec("confluent_kafka") is None:
        raise ClientMissing("the demo's consumers use confluent-kafka: pip install 'kgctl[demo]'")
    if out is not None and not pipelines:
        raise typer.BadParameter("Only --pipelines makes a report.", param_hint="'--out'")
    if tour is TourName.TRANSACTIONS:
        if pipelines:
            raise typer.BadParameter("belongs to the tour of groups.", param_hint="'--pipelines'")
        from kgctl.demo import exactly_once

        raise typer.Exit(exactly_once.run())
    from kgctl.demo.scenario import run

    raise typer.Exit(run(_folder(out) if pipelines else None))


def _folder(out: Path | None) -> Path:
    from kgctl.pipelines.runner import check_installed

    check_installed()
    if out is not None and out.exists() and any(out.iterdir()):
        raise Precondition(f"{out} is not empty; the report needs an empty or new folder")
    return out.absolute() if out is not None else Path(tempfile.mkdtemp(prefix="kgctl-report-"))
