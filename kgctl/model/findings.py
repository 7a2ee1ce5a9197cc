"""What the doctors find: rows about groups and about the cluster."""

from __future__ import annotations

from enum import StrEnum

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Records are lost or will be, or the group makes no progress."""
    WARNING = "warning"
    """The group works, but badly, or soon no longer."""
    INFO = "info"
    """Worth knowing; may be intended."""
    OK = "ok"
    """The rule found nothing."""
    UNKNOWN = "unknown"
    """The rule could not look: a fact is missing."""


WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO, Severity.OK, Severity.UNKNOWN)

FAIL_ON = ("error", "warning", "info", "never")
"""Values of --fail-on."""


def is_as_bad(severity: Severity | None, limit: str) -> bool:
    """Whether a finding is at least as bad as this value of --fail-on."""
    if severity is None or limit == FAIL_ON[-1]:
        return False
    return WORST_FIRST.index(severity) <= WORST_FIRST.index(Severity(limit))


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found about a group. Without a rule: the verdict about a group where no rule found anything.

    `verdict` is a word of model.health, None if there is no proof for one.
    """

    group: str
    verdict: str | None
    severity: Severity | None
    rule: str | None
    evidence: str | None
    advice: str | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class RuleRow:
    """The declaration of a rule."""

    rule: str
    severity: Severity
    looks_at: str
    advice: str


@dataclass(frozen=True, slots=True)
class ClusterFinding:
    """What a check of the cluster found about `subject`, such as a broker or a partition."""

    check: str
    subject: str
    severity: Severity
    evidence: str
    advice: str | None = None
    error: RowError | None = None
