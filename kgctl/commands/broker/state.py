"""The state of the broker of a data directory, as its files and its process show it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.model.local_broker import RUNNING, STARTING, STOPPED, LocalBrokerRow
from kgctl.render import TABLES
from kgctl.render.sheet import show_sheet

if TYPE_CHECKING:
    from broker.local import Ready
    from kgctl.commands.shared.settings import Settings


def directory_of(given: Path | None) -> Path:
    from broker.local import default_data_dir

    return Path(os.path.abspath(given)) if given is not None else default_data_dir()


def read_state(directory: Path) -> LocalBrokerRow:
    """What the files of the data directory say: a broker that is `running` here may still not answer."""
    from broker.local import KILLED, LOG_NAME, find_holder, last_run, running

    ready = running(directory)
    if ready is not None:
        return row_of(ready)
    holder = find_holder(directory)
    run = last_run(directory) if holder is None else None
    return LocalBrokerRow(
        state=STOPPED if holder is None else STARTING,
        address=None,
        pid=None if holder is None else holder.pid,
        durability=None,
        started=None if run is None else _iso(run.started_ms),
        data_dir=str(directory),
        log_file=str(directory / LOG_NAME),
        ended=None if run is None or run.ended_ms is None else _iso(run.ended_ms),
        reason=None if run is None else run.reason or KILLED,
    )


def row_of(ready: Ready) -> LocalBrokerRow:
    return LocalBrokerRow(
        state=RUNNING,
        address=ready.address,
        pid=ready.pid,
        durability=ready.durability,
        started=_iso(ready.started_ms),
        data_dir=ready.data_dir,
        security_protocol=ready.security_protocol,
        client_properties=ready.client_properties,
        log_file=ready.log_file,
        unimplemented_options=tuple(ready.unimplemented_options),
        other_listeners=tuple(map(str, ready.listeners[1:])),
        metrics=ready.metrics,
    )


def is_suspended(pid: int | None) -> bool:
    """Whether a signal such as SIGSTOP has stopped the process. False where the system does not say."""
    try:
        content = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    # The name of the program, in parentheses before the state, may contain any character.
    return content.rpartition(")")[2].split()[:1] in (["T"], ["t"])


def show_row(chosen: Settings, row: LocalBrokerRow) -> None:
    if chosen.output in TABLES and not chosen.columns:
        show_sheet(row, "local-broker")
    else:
        chosen.show([row], kind="local-broker")


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
