"""kgctl as a user runs it: a program with an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.out)["rows"]
        return found


@dataclass(frozen=True)
class Kgctl:
    bootstrap: str

    def __call__(self, *arguments: object, text: str | None = None, code: int | None = 0) -> Said:
        """Run it to its end; a code other than the one expected is an assertion, `code=None` expects nothing."""
        command = [sys.executable, "-m", "kgctl", *map(str, arguments), "--bootstrap", self.bootstrap]
        environment = {**os.environ, "COLUMNS": "400", "KGCTL_TRACEBACK": "1"}
        done = subprocess.run(
            command, input=text or "", capture_output=True, text=True, timeout=60, check=False, env=environment
        )
        said = Said(done.returncode, done.stdout, done.stderr)
        assert code is None or said.code == code, f"kgctl {arguments}: {said.code}\n{said.out}\n{said.err}"
        return said
