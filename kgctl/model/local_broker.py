"""The row about the local broker."""

from __future__ import annotations

from dataclasses import dataclass

RUNNING, STARTING, STOPPED = "running", "starting", "stopped"


@dataclass(frozen=True, slots=True)
class LocalBrokerRow:
    """`started` is UTC in ISO 8601; `unimplemented_options` were given but have no effect."""

    state: str
    address: str | None
    pid: int | None
    durability: str | None
    started: str | None
    data_dir: str
    log_file: str
    unimplemented_options: tuple[str, ...] = ()
