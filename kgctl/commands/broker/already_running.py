"""`kgctl broker start --if-not-running`: the broker that runs already, if there is one that serves."""

from __future__ import annotations

import time
from pathlib import Path

from kgctl.client.net.errors import Precondition, TimedOut
from kgctl.commands.broker.security import probe
from kgctl.commands.broker.state import read_state
from kgctl.model.local_broker import RUNNING, STARTING, STOPPED, LocalBrokerRow
from kgctl.render import note

PROBE_TIMEOUT_S = 5.0
_POLL_S = 0.05


def find_serving(directory: Path, timeout_s: float, listen: str | None = None) -> LocalBrokerRow | None:
    """The broker of this directory, None if no process holds it. Waits for one that is starting.

    Raises Precondition for one that does not answer.
    """
    deadline = time.monotonic() + timeout_s
    while (row := read_state(directory)).state == STARTING:
        if time.monotonic() > deadline:
            raise TimedOut(f"another process (pid {row.pid}) has been starting the broker for {timeout_s:g} seconds")
        time.sleep(_POLL_S)
    if row.state == STOPPED:
        return None
    row = probe(row, min(timeout_s, PROBE_TIMEOUT_S))
    if row.state != RUNNING:
        raise Precondition(f"the broker of {directory} runs, but {row.reason}; see `kgctl broker stop --force`")
    if listen is not None and row.address != listen and not listen.endswith(":0"):
        note(f"Note: the broker that runs already listens on {row.address}, not on {listen}.")
    return row
