"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from broker.light_dataclasses import dataclass
from kgctl.model.findings import Severity
from kgctl.watch.doctor.facts import GroupFacts

Check = Callable[[GroupFacts], Iterator[str]]
"""Yields a sentence of evidence for each thing found."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: what it looks at, what to do about a finding, and the kinds of facts without which it cannot look."""

    name: str
    severity: Severity
    looks_at: str
    advice: str
    check: Check
    needs: tuple[str, ...] = ()
