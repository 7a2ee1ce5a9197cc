"""Cores and timers are pure, as far as import contracts cannot check it: no I/O by built-in functions, one writer of hard state."""

from __future__ import annotations

import ast
from pathlib import Path

import broker

ROOT = Path(broker.__file__).parent
MODULES = [*sorted((ROOT / "cores").rglob("*.py")), ROOT / "timers.py"]


def test_no_module_opens_files_or_prints() -> None:
    called = {
        (path, node.func.id)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not [one for one in called if one[1] in ("open", "print", "input", "exec", "eval")]


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
