"""Thousands of clients that end behind parked requests: the broker lets go of them at once, and disturbs nobody else."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from broker.local import broker_environment
from broker.protocol.errors import ErrorCode
from broker.protocol.frames import request_frame
from broker.protocol.messages.metadata import MetadataRequest
from tests.durability.parts import Violation
from tests.durability.spawning import Nursery, Process
from tests.harness.requests import (
    create_topic,
    fetch_request,
    heartbeat_request,
    join_alone,
    join_request,
    metadata_of,
    produce,
    values_of,
)
from tests.harness.wire_client import ConnectionClosed, WireClient

CLIENTS = 5000
GONE_WITHIN_S = 5.0
MEMORY_WITHIN_S = 10.0
# Interpreter and allocator keep this much after the first thousands of connections.
RETAINED_MIB = 64
# Another client waits no longer than this while thousands of connections end.
PATIENCE_S = 1.0
FILLER = request_frame(MetadataRequest(topics=[]), 12, 2, "dying")


def close(dying: socket.socket) -> None:
    dying.close()


def reset(dying: socket.socket) -> None:
    dying.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    dying.close()


def half_close(dying: socket.socket) -> None:
    # The broker may have closed it already, because queued requests fill its memory.
    with suppress(OSError):
        dying.shutdown(socket.SHUT_WR)


ENDS = (close, reset, half_close)
QUEUED = (0, 60_000, 100_000, 200_000, 400_000)
# How many of the clients wait in a JoinGroup, if any.
MEMBERS = 200


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    """A round has the seed `seed + round`. A run of ten rounds or more also lets hosts vanish."""
    clients = min(CLIENTS, raised_limit() // 3)
    figures: Counter[str] = Counter()
    slowest: Counter[str] = Counter()
    with Nursery() as nursery:
        for number in range(rounds):
            case = Case(nursery, directory / str(seed + number), Random(seed + number), number)
            try:
                case.run(clients, report)
            except (AssertionError, OSError, ConnectionClosed) as error:
                raise Violation(f"round {number} (seed {seed + number}; {case.words}): {error}") from error
            finally:
                case.end()
            figures["rounds"] += 1
            figures["clients"] += clients
            for name, value in case.figures.items():
                slowest[name] = max(slowest[name], value)
    vanished = vanishing_hosts(directory / "vanishing", report) if rounds >= 10 else None
    return {**figures, **slowest, "vanished hosts gone, s": vanished}


def raised_limit() -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 1 << 20


class Case:
    def __init__(self, nursery: Nursery, directory: Path, random: Random, number: int) -> None:
        directory.mkdir(parents=True)
        self._random = random
        self._broker = nursery.spawn(directory / "data", "--override", "group.initial.rebalance.delay.ms=0")
        self._end_one = ENDS[number % len(ENDS)]
        self._queued = QUEUED[number % len(QUEUED)]
        self._joins = random.random() < 0.5
        parked = "fetches and joins" if self._joins else "fetches"
        self.words = f"{self._end_one.__name__} behind {parked} with {self._queued} bytes queued"
        self._dying: list[socket.socket] = []
        self._living: list[WireClient] = []
        self.figures: Counter[str] = Counter()

    def end(self) -> None:
        for dying in self._dying:
            dying.close()
        for living in self._living:
            living.close()
        self._broker.kill()

    def run(self, clients: int, report: Callable[[str], None]) -> None:
        broker = self._broker.ready()
        bystander, reader, member = (self._client() for _ in range(3))
        create_topic(bystander, "t")
        create_topic(bystander, "dead")
        joined = join_alone(member, "g")
        # A client that lives waits like those that die, with requests behind its fetch.
        reader.send(fetch_request("t", 0, max_wait_ms=600_000), 12)
        behind = self._random.choice((1, 500))
        for _ in range(behind):
            reader.send(MetadataRequest(topics=[]), 12)
        metadata_of(bystander)
        files, memory = open_files(broker), resident_mib(broker)

        self._pin(clients)
        metadata_of(bystander)
        most_memory = resident_mib(broker)
        began = time.monotonic()
        for dying in self._dying:
            self._end_one(dying)
        waited = self._until_gone(bystander, files, began)
        gone_s = time.monotonic() - began
        while (now := resident_mib(broker)) > memory + RETAINED_MIB:
            assert time.monotonic() - began < MEMORY_WITHIN_S, f"{now} MiB are left of {most_memory}, {memory} before"
            time.sleep(0.05)

        assert produce(bystander, "t", b"alive").error_code == ErrorCode.NONE
        assert values_of(reader.receive().responses[0].partitions[0]) == [b"alive"]
        for _ in range(behind):
            assert reader.receive().brokers
        self._check_group(member, joined)
        assert broker.code is None
        self.figures["slowest end, ms"] = round(gone_s * 1000)
        self.figures["longest wait of another client, ms"] = round(waited * 1000)
        self.figures["most memory, MiB"] = most_memory
        self.figures["memory afterwards, MiB"] = now
        report(f"{self.words}: gone after {gone_s:.2f} s, {memory}, {most_memory}, {now} MiB before, at most, after")

    def _pin(self, clients: int) -> None:
        """Clients with a parked request and others behind it."""
        fetch = request_frame(fetch_request("dead", 0, max_wait_ms=600_000), 12, 1, "dying")
        join = request_frame(join_request("g", session_timeout_ms=60_000), 3, 1, "dying")
        filler = FILLER * (self._queued // len(FILLER))
        unsent: dict[socket.socket, bytes] = {}
        for number in range(clients):
            dying = socket.create_connection(self._broker.address, timeout=10)
            self._dying.append(dying)
            dying.setblocking(False)
            unsent[dying] = (join if self._joins and number < MEMBERS else fetch) + filler
        deadline = time.monotonic() + 10
        while unsent and time.monotonic() < deadline:
            for dying, data in list(unsent.items()):
                try:
                    unsent[dying] = data[dying.send(data) :]
                except BlockingIOError:
                    continue
                except OSError:
                    # Queued requests fill the memory: the broker closed this one.
                    unsent[dying] = b""
                if not unsent[dying]:
                    del unsent[dying]
            time.sleep(0.01)

    def _until_gone(self, bystander: WireClient, files: int, began: float) -> float:
        """Wait until the broker has closed all dead connections. Returns the longest wait of another client in seconds."""
        longest = 0.0
        while (now := open_files(self._broker)) > files:
            asked = time.monotonic()
            metadata_of(bystander)
            longest = max(longest, time.monotonic() - asked)
            assert longest < PATIENCE_S, f"another client waited {longest:.2f} s"
            assert time.monotonic() - began < GONE_WITHIN_S, f"{now - files} connections are left"
            time.sleep(0.01)
        return longest

    def _check_group(self, member: WireClient, joined: Any) -> None:
        """The coordinator, as Kafka's, does not learn that connections have ended: their members stay."""
        code = member.ask(heartbeat_request("g", joined), 3).error_code
        if not self._joins:
            assert code == ErrorCode.NONE
            return
        assert code == ErrorCode.REBALANCE_IN_PROGRESS
        rejoined = member.ask(join_request("g", joined.member_id, session_timeout_ms=60_000), 3)
        assert rejoined.error_code == ErrorCode.NONE
        # The broker may have closed some before it read their requests.
        assert MEMBERS // 2 < len(rejoined.members) <= MEMBERS + 1, f"{len(rejoined.members)} members are left"

    def _client(self) -> WireClient:
        client = self._broker.client()
        self._living.append(client)
        return client


def open_files(broker: Process) -> int:
    return len(os.listdir(f"/proc/{broker.pid}/fd"))


def resident_mib(broker: Process) -> int:
    pages = int(Path(f"/proc/{broker.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def vanishing_hosts(directory: Path, report: Callable[[str], None]) -> float | None:
    """The seconds after which hosts that vanish are noticed; None if this system does not allow to simulate them."""
    in_network = ["unshare", "--map-root-user", "--net"]
    if not shutil.which("unshare") or subprocess.run([*in_network, "ip", "link", "set", "lo", "up"]).returncode:
        report("no network of its own for hosts that vanish: skipped")
        return None
    directory.mkdir(parents=True)
    command = [*in_network, sys.executable, "-m", "tests.durability.vanishing", str(directory)]
    ended = subprocess.run(command, env=broker_environment(), capture_output=True, text=True)
    if ended.returncode:
        raise Violation(f"vanishing hosts: {(ended.stdout + ended.stderr)[-1500:]}")
    report(f"hosts that vanish: gone after {ended.stdout.strip()} s")
    return float(ended.stdout)
