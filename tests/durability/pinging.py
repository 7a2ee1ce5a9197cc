"""A second client: it asks in turn and without pause, and reports how long each kind of answer took at worst.

Runs as a process of its own: `Pinger` starts it, and it ends with its standard input.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from broker.local import broker_command, broker_environment
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.wire_types import Message
from tests.harness.requests import batch, create_topic, heartbeat_request, join_alone, produce_request
from tests.harness.wire_client import WireClient

TOPIC, GROUP = "pinged", "pinging"
PAUSE_S = 0.002


class Waits(NamedTuple):
    """The longest waits since the last question, in ms. `held` leaves out the time in which the system ran other programs."""

    waited: float
    held: float
    request: str  # which waited longest without the time of other programs


class Pinger:
    def __init__(self, address: tuple[str, int], broker_pid: int) -> None:
        command = [*broker_command()[:-1], __name__, address[0], str(address[1]), str(broker_pid)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=broker_environment()
        )
        self.worst()

    def worst(self) -> Waits:
        """The longest waits since the last call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Waits(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.communicate(timeout=30)


def _queued_s(pid: int) -> float:
    """How long the process has waited for a processor."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def main() -> None:
    host, port, broker_pid, own = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), os.getpid()
    with WireClient((host, port), timeout_s=120) as client:
        create_topic(client, TOPIC)
        joined = join_alone(client, GROUP)
        pings: list[tuple[Message, int]] = [
            (ApiVersionsRequest(client_software_name="pinger", client_software_version="1"), 4),
            (heartbeat_request(GROUP, joined), 4),
            (produce_request(TOPIC, batch(b"ping")), 9),
        ]
        worst = Waits(0, 0, "")
        while True:
            for request, version in pings:
                began, queued = time.monotonic(), _queued_s(broker_pid) + _queued_s(own)
                client.ask(request, version)
                waited = time.monotonic() - began
                held = max(0.0, waited - (_queued_s(broker_pid) + _queued_s(own) - queued))
                longest = type(request).__name__ if held * 1000 > worst.held else worst.request
                worst = Waits(max(worst.waited, waited * 1000), max(worst.held, held * 1000), longest)
            if select.select([sys.stdin], [], [], PAUSE_S)[0]:
                if not sys.stdin.readline():
                    return
                print(json.dumps(worst), flush=True)
                worst = Waits(0, 0, "")


if __name__ == "__main__":
    main()
