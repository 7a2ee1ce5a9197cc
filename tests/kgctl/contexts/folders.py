"""A user's folders for a test: an environment with its own configuration and data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner, Result

from kgctl.app import app
from kgctl.contexts.target import VARIABLES


@dataclass(frozen=True)
class Home:
    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        return {"XDG_CONFIG_HOME": str(self.folder / "config"), "XDG_DATA_HOME": str(self.folder / "data")}

    @property
    def file(self) -> Path:
        return self.folder / "config" / "kgctl" / "config.toml"

    def write(self, text: str, mode: int = 0o600) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(text)
        self.file.chmod(mode)

    def use(self, name: str) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        (self.file.parent / "current-context").write_text(f"{name}\n")

    def local_broker(self, content: object) -> None:
        place = self.folder / "data" / "kgctl" / "broker"
        place.mkdir(parents=True)
        (place / "ready.json").write_text(content if isinstance(content, str) else json.dumps(content))

    def kgctl(self, *arguments: str, text: str | None = None, **environ: str) -> Result:
        """Run a command; other keyword arguments are variables."""
        unset: dict[str, str | None] = dict.fromkeys(VARIABLES)
        given: Mapping[str, str | None] = {"COLUMNS": "80", **unset, **self.environ, **environ}
        return CliRunner().invoke(app, list(arguments), input=text, env=given, prog_name="kgctl")

    def rows(self, *arguments: str, **environ: str) -> list[dict[str, object]]:
        done = self.kgctl(*arguments, "-o", "json", **environ)
        assert done.exit_code == 0, done.output
        found: list[dict[str, object]] = json.loads(done.stdout)["rows"]
        return found
