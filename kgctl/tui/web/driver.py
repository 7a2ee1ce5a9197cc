"""The driver of a dashboard whose screen is a page: `TEXTUAL_DRIVER` names it in the process of a session."""

from __future__ import annotations

import os

from textual import messages
from textual.drivers.web_driver import WebDriver


class SessionDriver(WebDriver):
    """Ends the dashboard when the server closes its input or dies."""

    def run_input_thread(self) -> None:
        super().run_input_thread()
        if not self.exit_event.is_set():
            # The last frame has no reader: let its writes succeed.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno)
            os.close(nowhere)
            self._app.post_message(messages.ExitApp())
