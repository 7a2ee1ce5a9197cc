"""Sends records in a thread of its own, while the command reads them."""

from __future__ import annotations

import signal
import threading
from types import TracebackType
from typing import Any

from kgctl.client.net.connector import ConnectionSettings
from kgctl.commands.bench.sending import Load, Sending
from kgctl.commands.shared.interruption import Interruption


class Feeder:
    """The block sends; its end stops the thread and waits for it."""

    def __init__(self, connection: ConnectionSettings, options: dict[str, Any], topic: str, load: Load) -> None:
        # No signal reaches it: the block decides when it ends.
        self._stopping = Interruption()
        self._sending = Sending(connection, options, self._stopping, lambda text: None)
        self._topic, self._load = topic, load
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="kgctl-bench-feeder", daemon=True)

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.signal = signal.SIGTERM
        self._thread.join()

    def check(self) -> None:
        """Raise why nothing more is sent."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._sending.run(self._topic, self._load)
        except BaseException as error:  # noqa: BLE001  (the thread of the command raises it)
            self._error = error
