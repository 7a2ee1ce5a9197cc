"""The clients of a run: producers, a committer and the members of a group, each a process with a journal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.durability.journal import Tail
from tests.harness import ROOT

TOPIC, PARTITIONS = "load", 4
GROUP, SIMPLE_GROUP = "members", "simple"
PRODUCERS = ("idempotent", "plain")
STOP_WITHIN_S = 60


@dataclass(eq=False)
class Client:
    name: str
    child: subprocess.Popen[bytes]
    journal: Tail
    errors: Path

    @property
    def is_running(self) -> bool:
        return self.child.poll() is None

    def ask_to_stop(self) -> None:
        if self.child.stdin is not None:
            self.child.stdin.close()
            self.child.stdin = None

    def wait(self) -> None:
        self.child.wait(STOP_WITHIN_S)
        assert self.child.returncode == 0, (
            f"{self.name} ended with {self.child.returncode}: {self.errors.read_text()[-2000:]}"
        )

    def kill(self) -> None:
        self.ask_to_stop()
        self.child.kill()
        self.child.wait()


class Load:
    def __init__(self, directory: Path, bootstrap: str) -> None:
        self._directory, self._bootstrap = directory, bootstrap
        self.producers = {name: self._producer(name) for name in PRODUCERS}
        self.committer = self._start("committing", "committer", SIMPLE_GROUP, "--partitions", str(PARTITIONS))
        self.members: list[Client] = []  # present and past
        self.stopped: set[Client] = set()

    def join(self) -> str:
        """Start a member. Returns its name."""
        self.members.append(self._start("consuming", f"member-{len(self.members) + 1}", GROUP, named=True))
        return self.members[-1].name

    def leave(self, random: Random) -> str:
        """Stop a member: by a leave or, one time in three, by a crash. Returns a description."""
        member = random.choice(self.present())
        self.stopped.add(member)
        if random.random() < 1 / 3:
            member.kill()
            return f"{member.name} crashed"
        member.ask_to_stop()
        return f"{member.name} leaves"

    def present(self) -> list[Client]:
        return [member for member in self.members if member not in self.stopped]

    def check(self) -> None:
        """Check that no client has given up."""
        for client in (*self.producers.values(), self.committer, *self.present()):
            assert client.is_running, (
                f"{client.name} ended with {client.child.returncode}: {client.errors.read_text()[-2000:]}"
            )

    def stop_producers(self) -> None:
        """Stop the producers and wait until all their records are acknowledged."""
        for client in (*self.producers.values(), self.committer):
            client.ask_to_stop()
        for client in (*self.producers.values(), self.committer):
            client.wait()

    def stop_members(self) -> None:
        for member in self.members:
            member.ask_to_stop()
        for member in self.members:
            if member in self.stopped and member.child.returncode is not None:
                continue
            member.wait()

    def kill(self) -> None:
        for client in self.all():
            client.kill()

    def all(self) -> Iterator[Client]:
        yield from self.producers.values()
        yield self.committer
        yield from self.members

    def _producer(self, name: str) -> Client:
        options = ["--idempotent"] if name == "idempotent" else []
        return self._start("producing", name, None, "--partitions", str(PARTITIONS), *options, named=True)

    def _start(self, module: str, name: str, group: str | None, *options: str, named: bool = False) -> Client:
        journal, errors = self._directory / f"{name}.jsonl", self._directory / f"{name}.stderr.txt"
        command = [sys.executable, "-m", f"tests.durability.{module}", "--bootstrap", self._bootstrap, "--topic", TOPIC]
        command += ["--journal", str(journal), *options]
        command += ["--group", group] if group else []
        command += ["--name", name] if named else []
        root = ROOT
        with errors.open("wb") as file:
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=file, cwd=root)
        return Client(name, child, Tail(journal), errors)
