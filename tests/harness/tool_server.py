"""Kafka's command-line tools in one JVM per release: a run takes milliseconds instead of a second."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tests.harness.reference_kafka import TOOLS, Jars

# Tools that moved after a release.
_MOVED = {"3.9.1": {"acls": "kafka.admin.AclCommand"}}
SOURCE = Path(__file__).with_name("java") / "ToolServer.java"


class Ran(NamedTuple):
    code: int
    stdout: str
    stderr: str


class ToolServer:
    """The tools of one Kafka release, for any cluster, until the end of the block."""

    def __init__(self, version: str) -> None:
        # Java compiles a source file that it is given in place of a class.
        self._tools = TOOLS | _MOVED.get(version, {})
        command = Jars(version).command(str(SOURCE), heap="384m")
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __enter__(self) -> ToolServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._child.kill()
        self._child.communicate()

    def run(self, name: str, *arguments: object, text: str = "") -> Ran:
        """Run `kafka-NAME.sh ARGUMENTS` with `text` as its standard input."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        words = [self._tools[name], *(_encoded(str(word)) for word in (text, *arguments))]
        self._child.stdin.write(" ".join(words) + "\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline().split()
        assert answer, self._child.communicate()[1]
        return Ran(int(answer[0]), _decoded(answer[1]), _decoded(answer[2]))


def _encoded(text: str) -> str:
    return "." + base64.b64encode(text.encode()).decode()


def _decoded(word: str) -> str:
    return base64.b64decode(word[1:]).decode()
