"""The clients of a run: sources that write transactions, and copiers that consume, transform and produce."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.durability.journal import Tail
from tests.durability.load import Client
from tests.durability.transactions.copier import HUNG
from tests.durability.transactions.values import OUTPUT, PARTITIONS
from tests.harness import ROOT

SOURCES = {"librdkafka": "source", "wire": "wire_source"}
ASSIGNED, SUBSCRIBED = "assigned", "subscribed"
"""Groups of copiers: over the wire, each with its partitions, or members with librdkafka."""


def output_of(group: str) -> str:
    return f"{OUTPUT}-{group}"


class Load:
    def __init__(self, directory: Path, bootstrap: str, groups: tuple[str, ...]) -> None:
        self._directory, self._bootstrap, self.groups = directory, bootstrap, groups
        self._starts = 0
        self.sources = {name: self._start(module, name) for name, module in SOURCES.items()}
        self.copiers: dict[str, tuple[str, list[Client]]] = {}
        for group in groups:
            for number in range(2):
                name = f"{group}-{number}"
                self.copiers[name] = (group, [self._copier(group, name)])

    def replace_copier(self, random: Random) -> str:
        """Start a copier under the name of one that crashed, or of one that lives and is fenced. Returns a description."""
        name = random.choice(list(self.copiers))
        group, runs = self.copiers[name]
        # One that has done nothing yet might take the transactional id after its successor.
        has_crashed = (
            random.random() < 0.5 or not runs[-1].journal.path.exists() or not runs[-1].journal.path.stat().st_size
        )
        if has_crashed:
            runs[-1].kill()
        runs.append(self._copier(group, name))
        return f"{name} {'crashed' if has_crashed else 'is fenced'}"

    def check(self) -> None:
        """Check that no client has given up, except copiers that were replaced. Start those again that got stuck."""
        for name, (group, runs) in self.copiers.items():
            if runs[-1].child.poll() == HUNG:
                runs.append(self._copier(group, name))
        for client in (*self.sources.values(), *(runs[-1] for _, runs in self.copiers.values())):
            assert client.is_running, (
                f"{client.name} ended with {client.child.returncode}: {client.errors.read_text()[-2000:]}"
            )

    def stop_sources(self) -> None:
        """Stop the sources, and wait until their last transactions have ended."""
        for client in self.sources.values():
            client.ask_to_stop()
        for client in self.sources.values():
            client.wait()

    def kill(self) -> None:
        for client in self.all():
            client.kill()

    def all(self) -> Iterator[Client]:
        yield from self.sources.values()
        for _, runs in self.copiers.values():
            yield from runs

    def _copier(self, group: str, name: str) -> Client:
        options = ["--group", group, "--output", output_of(group)]
        if group == SUBSCRIBED:
            return self._start("copier", name, *options)
        half, number = PARTITIONS // 2, int(name[-1])
        options += ["--partitions", ",".join(str(p) for p in range(number * half, (number + 1) * half))]
        return self._start("wire_copier", name, *options, "--version", str(number + 1))

    def _start(self, module: str, name: str, *options: str) -> Client:
        self._starts += 1
        journal, errors = (self._directory / f"{name}-{self._starts}.{kind}" for kind in ("jsonl", "stderr.txt"))
        command = [sys.executable, "-m", f"tests.durability.transactions.{module}", "--bootstrap", self._bootstrap]
        command += ["--journal", str(journal), "--name", name, *options]
        with errors.open("wb") as file:
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=file, cwd=ROOT)
        return Client(name, child, Tail(journal), errors)
