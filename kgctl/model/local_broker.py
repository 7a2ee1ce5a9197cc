"""The row about the local broker."""

from __future__ import annotations

from dataclasses import dataclass

RUNNING, STARTING, STOPPED = "running", "starting", "stopped"


@dataclass(frozen=True, slots=True)
class LocalBrokerRow:
    """Times are UTC in ISO 8601; `unimplemented_options` were given but have no effect.

    `ended` and `reason` tell when and why the last run ended; a killed one leaves no time.
    """

    state: str
    address: str | None
    pid: int | None
    durability: str | None
    started: str | None
    data_dir: str
    log_file: str
    unimplemented_options: tuple[str, ...] = ()
    ended: str | None = None
    reason: str | None = None
