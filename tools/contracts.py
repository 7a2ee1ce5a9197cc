"""Import Linter contract types of this project: no import cycles between modules, no long files."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class NoCyclesContract(Contract):
    """No two modules import each other, directly or through others; imports under TYPE_CHECKING count."""

    type_name = "no_cycles"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        cycles = _cycles(graph)
        return ContractCheck(kept=not cycles, metadata={"cycles": cycles})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for cycle in check.metadata["cycles"]:
            output.print_error(f"{len(cycle)} modules import each other: {', '.join(cycle)}")


class FileLengthContract(Contract):
    """No module of the named packages has more than `max_lines` lines."""

    type_name = "file_length"

    max_lines = fields.IntegerField()
    packages = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        limit: int = self.max_lines  # type: ignore[assignment]
        lengths = {path: len(path.read_text().splitlines()) for path in _files(self.packages)}  # type: ignore[arg-type]
        long = {path: lines for path, lines in sorted(lengths.items()) if lines > limit}
        return ContractCheck(kept=bool(lengths) and not long, metadata={"long": long})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for path, lines in check.metadata["long"].items():
            output.print_error(f"{path.name} has {lines} lines: {path}")


def _cycles(graph: ImportGraph) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan), each sorted."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for imported in graph.find_modules_directly_imported_by(module):
            if imported not in order:
                visit(imported)
                lowest[module] = min(lowest[module], lowest[imported])
            elif imported in stack:
                lowest[module] = min(lowest[module], order[imported])
        if lowest[module] == order[module]:
            at = stack.index(module)
            component = stack[at:]
            del stack[at:]
            if len(component) > 1:
                found.append(sorted(component))

    for module in sorted(graph.modules):
        if module not in order:
            visit(module)
    return found


def _files(packages: list[str]) -> list[Path]:
    out: list[Path] = []
    for package in packages:
        spec = find_spec(package)
        assert spec is not None, package
        assert spec.origin is not None, package
        out.extend(Path(spec.origin).parent.rglob("*.py"))
    return out
