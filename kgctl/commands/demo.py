"""`kgctl demo`: the main job, shown on a broker of its own."""

from __future__ import annotations

import importlib.util

import typer

from kgctl.client.errors import KgctlError


class ClientMissing(KgctlError):
    """The demo's consumers need a client that does not come with kgctl."""


def demo() -> None:
    """Show the main job: a broker, records, a consumer group, a rebalance, moved offsets. Takes under a minute."""
    if importlib.util.find_spec("confluent_kafka") is None:
        raise ClientMissing("the demo's consumers use confluent-kafka: pip install 'kgctl[demo]'")
    from kgctl.demo.scenario import run

    raise typer.Exit(run())
