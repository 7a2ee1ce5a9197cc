"""Rows of `kgctl context`: contexts, their settings, the steps of a test."""

from __future__ import annotations

from broker.light_dataclasses import dataclass

OK, FAILED = "ok", "failed"


@dataclass(frozen=True, slots=True)
class ContextRow:
    """`defined_in` is user or project; `shadowed` says that the project's context of this name counts instead."""

    context: str
    current: bool
    bootstrap: str | None
    protocol: str
    mechanism: str | None
    read_only: bool
    confirm: bool
    color: str | None
    timeout_s: float | None
    defined_in: str
    file: str
    shadowed: bool = False


@dataclass(frozen=True, slots=True)
class SettingRow:
    """`value` of a secret is where it comes from, or ***."""

    context: str | None
    setting: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of a test: `detail` is what was found, `advice` what to do about a failure."""

    step: str
    status: str
    address: str | None
    detail: str | None
    duration_ms: float | None
    advice: str | None
