"""The programs of docs/clients.md for each delivery guarantee, as processes that tests kill."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from broker.local import broker_environment
from tests.harness import ROOT

# Headings of the page, the groups of their programs, and the options of the producers that belong to them.
AT_MOST_ONCE, AT_LEAST_ONCE, EXACTLY_ONCE = "At most once", "At least once", "Exactly once"
GROUPS = {AT_MOST_ONCE: "notices", AT_LEAST_ONCE: "archive", EXACTLY_ONCE: "billing"}
PRODUCERS: dict[str, dict[str, object]] = {
    AT_MOST_ONCE: {"enable_idempotence": False, "retries": 0, "acks": 1},
    AT_LEAST_ONCE: {},
    EXACTLY_ONCE: {},
}
INPUT, OUTPUT, PREFIX = "orders", "bills", b"bill "
RUNNER = "tests.harness.dying_program"
# The group notices soon that a member is dead.
SHORT_SESSION = {"session_timeout_ms": 1_000, "heartbeat_interval_ms": 200}
PAGE = ROOT / "docs" / "clients.md"


def source(guarantee: str, bootstrap: str) -> str:
    """The program of the page, for another cluster."""
    (program,) = re.findall(rf"### {guarantee}\n\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert program.count("localhost:9092") == program.count("bootstrap_servers=") > 0
    return str(program).replace("localhost:9092", bootstrap)


class Running:
    """One process of a program. What it prints is appended to `output`, whose last line is dropped if a kill cut it.

    `options` come before those of its consumer; `death` are the last arguments of `tests.harness.dying_program`.
    """

    def __init__(self, guarantee: str, bootstrap: str, output: Path, options: Mapping[str, int], *death: str) -> None:
        self._program = output.with_suffix(".py")
        self._program.write_text(source(guarantee, bootstrap))
        self._output, self._errors = output, output.with_suffix(".stderr")
        _drop_unfinished_line(output)
        with output.open("ab") as stdout, self._errors.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", RUNNER, json.dumps(options), str(self._program), *death],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=ROOT,
                env=broker_environment(),
            )

    def printed(self) -> list[str]:
        """The lines so far, also those of earlier processes with the same `output`. The last line is whole: it is flushed."""
        return self._output.read_text().splitlines()

    def size(self) -> int:
        """How many bytes they have printed."""
        return self._output.stat().st_size

    def check(self) -> None:
        """Raise AssertionError if it has ended."""
        code = self.process.poll()
        assert code is None, f"ended with {code}: {self._errors.read_text()[-3000:]}"

    def code(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def _drop_unfinished_line(output: Path) -> None:
    if output.exists():
        with output.open("rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
