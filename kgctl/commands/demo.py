"""`kgctl demo`: the main job, shown on a broker of its own."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import KgctlError, Precondition


class ClientMissing(KgctlError):
    """The demo's consumers need a client that does not come with kgctl."""


def demo(
    pipelines: Annotated[
        bool, typer.Option("--pipelines", help="With a report by Spark at the end: takes half a minute more.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where the report goes. [default: a new temporary folder]"),
    ] = None,
) -> None:
    """Show the main job: a broker, records, a consumer group, a rebalance, moved offsets. Takes under a minute."""
    if importlib.util.find_spec("confluent_kafka") is None:
        raise ClientMissing("the demo's consumers use confluent-kafka: pip install 'kgctl[demo]'")
    if out is not None and not pipelines:
        raise typer.BadParameter("Only --pipelines makes a report.", param_hint="'--out'")
    from kgctl.demo.scenario import run

    raise typer.Exit(run(_folder(out) if pipelines else None))


def _folder(out: Path | None) -> Path:
    from kgctl.pipelines.runner import check_installed

    check_installed()
    if out is not None and out.exists() and any(out.iterdir()):
        raise Precondition(f"{out} is not empty; the demo's report needs a folder of its own")
    return out.absolute() if out is not None else Path(tempfile.mkdtemp(prefix="kgctl-report-"))
