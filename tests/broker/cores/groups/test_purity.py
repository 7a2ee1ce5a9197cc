"""Cores and timers are pure: they read no clock, draw no randomness, log nothing and perform no I/O."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import broker

ROOT = Path(broker.__file__).parent
FORBIDDEN = {
    "time",
    "asyncio",
    "logging",
    "random",
    "uuid",
    "os",
    "datetime",
    "secrets",
    "socket",
    "threading",
    "io",
    "sys",
}
MODULES = [*sorted((ROOT / "cores").rglob("*.py")), ROOT / "timers.py"]


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_module_imports_nothing_impure(path: Path) -> None:
    assert not imported(path) & FORBIDDEN


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_module_neither_opens_files_nor_prints(path: Path) -> None:
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"open", "print", "input", "exec", "eval"}


def test_only_apply_changes_hard_state() -> None:
    writers = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, (ast.AugAssign, ast.AnnAssign))
                else []
            )
            if any(
                isinstance(target, ast.Attribute) and target.attr in ("metadata", "offsets", "floors")
                for target in targets
            ):
                writers.add(path.stem)
    # group.py sets them up empty.
    assert writers == {"group", "hard_state"}
