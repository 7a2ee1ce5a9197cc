"""A user without contexts, in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kgctl.contexts.folders import Home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return Home(tmp_path)
