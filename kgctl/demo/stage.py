"""What the tours share: numbered steps, commands whose output is shown, signals, the temporary broker."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Callable

from broker.local import LocalBroker
from kgctl.client.admin.admin import Admin
from kgctl.contexts.connecting import connection_at
from kgctl.demo.children import Children, DemoFailed, run_kgctl
from kgctl.exit_codes import INTERRUPTED
from kgctl.signals import ignore

WAIT_S = 30.0
POLL_S = 0.05
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stage:
    """A running broker, its clients, and the narration of a tour with this many steps."""

    def __init__(self, bootstrap: str, admin: Admin, children: Children, started: float, steps: int) -> None:
        self.bootstrap, self.admin, self.children = bootstrap, admin, children
        self._started, self._steps, self._step = started, steps, 1

    def open(self, title: str) -> None:
        """Begin the next step."""
        self._step += 1
        say(f"\n[{self._step}/{self._steps}] {title}   ({time.monotonic() - self._started:.0f} s)")

    def kgctl(self, *arguments: str) -> None:
        """Run a command and show it with its output."""
        say(f"  $ kgctl {shlex.join(arguments)}")
        run_kgctl(arguments, self.bootstrap, lambda line: say(f"  {line}"))

    def until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not holds():
            self.children.check()
            if time.monotonic() > deadline:
                raise DemoFailed(f"timed out after {WAIT_S:.0f} s waiting for {what}")
            time.sleep(POLL_S)


def take(tour: Callable[[Stage], None], *, steps: int, session_timeout_ms: int, afterwards: str) -> int:
    """Take a tour; returns the exit code. Stops everything it started, however it ends."""
    before = {number: signal.signal(number, _interrupt) for number in STOP_SIGNALS}
    try:
        _on_a_broker(tour, steps, session_timeout_ms)
    except KeyboardInterrupt:
        say("\nInterrupted; everything has been stopped.")
        return INTERRUPTED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    say(afterwards.rstrip())
    return 0


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _interrupt(*_: object) -> None:
    # A second signal must not interrupt the cleanup.
    _ignore_signals()
    raise KeyboardInterrupt


def _on_a_broker(tour: Callable[[Stage], None], steps: int, session_timeout_ms: int) -> None:
    started = time.monotonic()
    say(f"[1/{steps}] Starting a broker in a temporary data directory")
    broker = LocalBroker({"group.min.session.timeout.ms": 1000})
    try:
        broker.start()
        say(f"  ready after {(time.monotonic() - started) * 1000:.0f} ms: pid {broker.pid}, data in {broker.data_dir}")
        say(f"  $ export KGCTL_BOOTSTRAP={broker.bootstrap_servers}")
        with (
            Admin(connection_at(broker.bootstrap_servers)) as admin,
            Children(broker.bootstrap_servers, session_timeout_ms) as children,
        ):
            try:
                tour(Stage(broker.bootstrap_servers, admin, children, started, steps))
            finally:
                _ignore_signals()
    finally:
        _ignore_signals()
        broker.close()
    say(f"  stopped all processes and removed the data directory after {time.monotonic() - started:.0f} s")


def _ignore_signals() -> None:
    """The cleanup takes a bounded time; a second Ctrl-C in the middle of it would leave processes behind."""
    ignore(*STOP_SIGNALS)
