"""A group of member processes as the test sees it: owned partitions, received records, commits."""

from __future__ import annotations

import collections
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any

Received = tuple[int, int, str]
"""Partition, offset, value."""


@dataclass
class Member:
    name: str
    child: subprocess.Popen[str]
    errors: IO[str]
    owned: set[int] = field(default_factory=set)
    ever_revoked: set[int] = field(default_factory=set)
    events: list[dict[str, Any]] = field(default_factory=list)

    def kill(self) -> None:
        """Kill it with SIGKILL, without LeaveGroup."""
        self.child.kill()
        self.child.wait()

    def leave(self) -> None:
        """Let it leave the group and exit."""
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait(20)


class Group:
    """Starts members and waits for conditions on their events."""

    def __init__(
        self,
        client: str,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        assignor: str = "range",
        session_timeout_ms: int = 3000,
        protocol: str = "classic",
    ) -> None:
        self.group, self.topic, self.members = group, topic, list[Member]()
        self.received: list[Received] = []
        self.committed: dict[int, int] = {}
        self._changed = threading.Condition()
        self._client = client
        self._command = [sys.executable, "-m", "tests.clients.member", "--bootstrap", bootstrap]
        self._command += ["--group", group, "--topic", topic, "--assignor", assignor]
        self._command += ["--session-timeout-ms", str(session_timeout_ms), "--protocol", protocol]

    def __enter__(self) -> Group:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for member in self.members:
            member.kill()
            if error is not None:
                print(self._report(member), file=sys.stderr)
            for pipe in (member.child.stdin, member.child.stdout, member.errors):
                if pipe is not None:
                    pipe.close()

    def start(self, count: int, client: str | None = None) -> list[Member]:
        """Start members, of another client if one is named."""
        return [self._start_one(f"member-{len(self.members) + 1}", client=client) for _ in range(count)]

    def start_static(self, *instances: str) -> list[Member]:
        """Start a static member for each group instance id."""
        return [self._start_one(f"member-{len(self.members) + 1}", "--instance", name) for name in instances]

    def live(self) -> list[Member]:
        return [member for member in self.members if member.child.poll() is None]

    def wait_until_shared(self, sizes: Sequence[int], within_s: float = 30) -> None:
        """Wait until the live members own disjoint sets of partitions of these sizes."""

        def shared() -> bool:
            parts = [member.owned for member in self.live()]
            disjoint = len(set().union(*parts)) == sum(map(len, parts))
            return disjoint and sorted(map(len, parts)) == sorted(sizes)

        self.wait_until(shared, within_s, lambda: f"owned {[sorted(m.owned) for m in self.live()]}, not {list(sizes)}")

    def wait_until_received(self, values: set[str], within_s: float = 30) -> None:
        def missing() -> set[str]:
            return values - {value for _, _, value in self.received}

        self.wait_until(lambda: not missing(), within_s, lambda: f"{len(missing())} of {len(values)} never arrived")

    def wait_until_committed(self, next_offsets: dict[int, int], within_s: float = 30) -> None:
        self.wait_until(
            lambda: all(self.committed.get(p, 0) >= o for p, o in next_offsets.items()),
            within_s,
            lambda: f"committed {self.committed}, not {next_offsets}",
        )

    def wait_until(self, met: Callable[[], bool], within_s: float, otherwise: Callable[[], str]) -> None:
        deadline = time.monotonic() + within_s
        with self._changed:
            while not met():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"within {within_s} s: {otherwise()}")
                self._changed.wait(min(left, 0.5))

    def received_more_than_once(self) -> list[tuple[int, int]]:
        times = collections.Counter((partition, offset) for partition, offset, _ in self.received)
        return [place for place, count in times.items() if count > 1]

    def _start_one(self, name: str, *options: str, client: str | None = None) -> Member:
        errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the member
        child = subprocess.Popen(
            [*self._command, "--client", client or self._client, "--client-id", name, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        member = Member(name, child, errors)
        self.members.append(member)
        threading.Thread(target=self._listen, args=(member,), daemon=True).start()
        return member

    def _listen(self, member: Member) -> None:
        for event in _events(member.child):
            with self._changed:
                member.events.append(event)
                self._note(member, event)
                self._changed.notify_all()

    def _note(self, member: Member, event: dict[str, Any]) -> None:
        match event["event"]:
            case "assigned":
                member.owned |= set(event["partitions"])
            case "revoked":
                member.owned -= set(event["partitions"])
                member.ever_revoked |= set(event["partitions"])
            case "records":
                self.received += [(p, o, value) for p, o, value in event["records"]]
            case "committed":
                for partition, offset in event["offsets"].items():
                    self.committed[int(partition)] = max(offset, self.committed.get(int(partition), 0))

    def _report(self, member: Member) -> str:
        member.errors.seek(0)
        tail = [{**e, "records": f"{len(e['records'])} records"} if "records" in e else e for e in member.events[-40:]]
        return f"--- {member.name}, owned {sorted(member.owned)}\n{tail}\n{member.errors.read()[-3000:]}"


def _events(child: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert child.stdout is not None
    try:
        for line in child.stdout:
            if line.endswith("\n"):
                yield json.loads(line)
    except ValueError:
        return  # the test ended and closed the pipe
