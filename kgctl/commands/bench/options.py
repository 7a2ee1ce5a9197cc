"""Options that the measurements share."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.shared.arguments import not_empty

MOST_RECORD_BYTES = 100_000_000

RecordBytes = Annotated[
    int, typer.Option("--size", min=1, max=MOST_RECORD_BYTES, metavar="BYTES", help="Size of a value.")
]
Seconds = Annotated[
    float | None,
    typer.Option("--duration", min=0.1, metavar="SECONDS", help="Stop after this time. [default: no limit]"),
]
# What a broker on the JVM takes, started just now, to come near to its full speed.
DEFAULT_WARM_UP_S = 5.0
WarmUp = Annotated[
    float,
    typer.Option("--warm-up", min=0, max=3600, metavar="SECONDS", help="Do the same this long first, unmeasured."),
]
Partitions = Annotated[
    int, typer.Option("--partitions", min=1, max=10_000, metavar="N", help="Partitions of the topic, if it is created.")
]
Replicas = Annotated[
    int | None,
    typer.Option(
        "--replication-factor", min=1, metavar="N", help="Replicas of the same. [default: as the broker decides]"
    ),
]
Keep = Annotated[bool, typer.Option("--keep", help="Do not remove the topic at the end.")]
TopicName = Annotated[
    str | None,
    typer.Option("--topic", metavar="TOPIC", callback=not_empty, help="Use this topic, and keep it."),
]
Existing = Annotated[bool, typer.Option("--existing", help="Write to --topic although it exists already.")]
# Requests with a batch of 16 KiB, the default of producers, take three times the CPU time of their records.
DEFAULT_BATCH_BYTES = 262_144
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, metavar="BYTES", help="Largest batch per partition.")]
LingerMs = Annotated[int, typer.Option("--linger-ms", min=0, metavar="MS", help="How long a batch waits for records.")]


def needs(option: str, value: object, other: str, other_value: object) -> None:
    """BadParameter if `option` is given without the one that it needs."""
    if value and not other_value:
        raise typer.BadParameter(f"needs {other}.", param_hint=f"'{option}'")
