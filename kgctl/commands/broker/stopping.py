"""Stops the process that holds a data directory, and no other."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.client.net.errors import Precondition, TimedOut
from kgctl.commands.broker.state import is_suspended
from kgctl.render import note

if TYPE_CHECKING:
    from broker.local import Holder

POLL_INTERVAL_S = 0.05
IDENTIFY_S = 0.5
# How long a killed process may take to give up its lock.
KILLED_S = 10.0


def stop_broker(directory: Path, timeout_s: float, *, force: bool) -> None:
    """Stop the broker and wait for its end. With `force`, kill it if it does not stop within the time, or cannot."""
    from broker.local import find_holder

    holder = find_holder(directory)
    if force and holder is not None and is_suspended(holder.pid):
        # It cannot act on any other signal.
        _kill(directory)
        return
    holder = _send(directory, signal.SIGTERM)
    if holder is None:
        note(f"No broker runs on {directory}.")
        return
    if _has_ended(directory, holder, timeout_s):
        return
    if force:
        _kill(directory)
        return
    hint = (
        "its process is suspended; resume it with kill -CONT" if is_suspended(holder.pid) else "--timeout allows more"
    )
    raise TimedOut(
        f"the broker (pid {holder.pid}) has not stopped within {timeout_s:g} seconds: {hint}, or add --force to kill it"
    )


def _kill(directory: Path) -> None:
    holder = _send(directory, signal.SIGKILL)
    if holder is None:
        return
    if not _has_ended(directory, holder, KILLED_S):
        raise TimedOut(f"the broker (pid {holder.pid}) was killed, but has not ended within {KILLED_S:g} seconds")
    note(f"Killed the broker (pid {holder.pid}). Acknowledged records are safe; the next start recovers.")


def _has_ended(directory: Path, holder: Holder, timeout_s: float) -> bool:
    from broker.local import find_holder

    deadline = time.monotonic() + timeout_s
    while find_holder(directory) == holder:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_INTERVAL_S)
    return True


def _send(directory: Path, number: signal.Signals) -> Holder | None:
    """Send the signal to the process that holds the directory, and to no other. None if no process holds it."""
    from broker.local import LOCK_NAME, OtherProcessError, find_holder

    # A broker that is starting or ending may not be found at once.
    deadline = time.monotonic() + IDENTIFY_S
    while True:
        holder = find_holder(directory)
        if holder is None:
            return None
        try:
            if holder.identity is None:
                raise OtherProcessError(f"{directory / LOCK_NAME} does not name the process that holds the directory")
            holder.identity.send_signal(number)
        except PermissionError:
            raise Precondition(f"the broker (pid {holder.pid}) belongs to another user") from None
        except (OtherProcessError, ProcessLookupError) as error:
            if time.monotonic() > deadline:
                reason = error if isinstance(error, OtherProcessError) else "there is no process with this pid"
                pid = f" (pid {holder.pid})" if holder.pid is not None else ""
                raise Precondition(
                    f"cannot stop the broker of {directory}{pid}: {reason}; stop it where it was started"
                ) from None
            time.sleep(POLL_INTERVAL_S)
        else:
            return holder
