"""A table of medians over all rounds, one column per target, with ratios to the first target."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.measures import Absent, Figure
from bench.targets import Target


class Report:
    """Collects figures by measure and target."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self.targets = targets
        self._figures: dict[str, dict[str, list[float]]] = {}
        self._kind: dict[str, Figure | Absent] = {}
        self._reasons: dict[tuple[str, str], str] = {}

    def add(self, target: Target, figure: Figure | Absent) -> None:
        # The kind of a figure says which direction is better; a missing figure has none.
        if isinstance(figure, Figure) or figure.measure not in self._kind:
            self._kind[figure.measure] = figure
        values = self._figures.setdefault(figure.measure, {})
        if isinstance(figure, Absent):
            self._reasons[target.name, figure.measure] = figure.reason
        else:
            values.setdefault(target.name, []).append(figure.value)

    def rows(self) -> list[dict[str, object]]:
        """One row for each measure and target, for JSON."""
        return [
            {
                "measure": measure,
                "unit": self._kind[measure].unit,
                "target": target.name,
                "durability": target.durability,
                "median": statistics.median(values),
                "rounds": values,
            }
            for measure, by_target in self._figures.items()
            for target in self.targets
            if (values := by_target.get(target.name))
        ]

    def text(self) -> str:
        """The table; `x` is the factor by which the first target is better (below 1: worse)."""
        lines = [f"{target.name}: {target.durability}" for target in self.targets]
        first, width = self.targets[0], max(14, *(len(target.name) + 2 for target in self.targets))
        head = f"{'median of all rounds':48}" + "".join(f"{target.name:>{width}}" for target in self.targets)
        head += "".join(f"{'x ' + target.name:>{width + 2}}" for target in self.targets[1:])
        lines += ["", head]
        for measure, by_target in self._figures.items():
            medians = {name: statistics.median(values) for name, values in by_target.items()}
            kind = self._kind[measure]
            line = f"{measure + ' (' + kind.unit + ')':48}"
            line += "".join(f"{_number(medians.get(target.name)):>{width}}" for target in self.targets)
            for target in self.targets[1:]:
                more_is_better = isinstance(kind, Figure) and kind.more_is_better
                ratio = _times_better(medians.get(first.name), medians.get(target.name), more_is_better)
                line += f"{_number(ratio):>{width + 2}}"
            lines.append(line)
        lines += [f"- {name}, {measure}: {reason}" for (name, measure), reason in self._reasons.items()]
        return "\n".join(lines)


def _times_better(ours: float | None, theirs: float | None, more_is_better: bool) -> float | None:
    if not ours or not theirs:
        return None
    return ours / theirs if more_is_better else theirs / ours


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
