"""Run in a network of its own, whose loopback fails while clients wait: print the seconds until the broker has noticed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.durability.connections import FILLER, open_files
from tests.durability.spawning import Nursery
from tests.harness.requests import create_topic, fetch_request

CLIENTS = 1000
NOTICED_WITHIN_S = 150.0


def main(directory: Path) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with Nursery() as nursery:
        broker = nursery.spawn(directory / "data").ready()
        try:
            with broker.client() as client:
                create_topic(client, "t")
            files = open_files(broker)
            vanishing = [broker.client() for _ in range(CLIENTS)]
            for number, client in enumerate(vanishing):
                client.send(fetch_request("t", 0, max_wait_ms=2**31 - 1), 12)
                client.socket.settimeout(0.5)
                # Half of them have so much queued that the broker does not read from them.
                client.send_bytes(FILLER * (number % 2 * 130_000 // len(FILLER)))
            time.sleep(1)
            subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
            began = time.monotonic()
            while (now := open_files(broker)) > files:
                assert time.monotonic() - began < NOTICED_WITHIN_S, f"{now - files} connections are left"
                time.sleep(0.1)
            print(f"{time.monotonic() - began:.1f}")
        finally:
            broker.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
