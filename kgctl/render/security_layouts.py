"""The tables about security: contexts, users and ACLs."""

from __future__ import annotations

from typing import Any

from kgctl.model.acls import AclChange, AclRow
from kgctl.model.contexts import ContextRow, SettingRow, StepRow
from kgctl.model.users import UserChange, UserRow
from kgctl.render.columns import RELUCTANTLY, Column, Fit, Layout, Shown, Tone
from kgctl.render.parts import ERROR, ID, NAME, SENTENCE, STATUS

STEP_TONES = {"ok": Tone.GOOD, "failed": Tone.BAD}
ACL_COLUMNS = (
    Column("TYPE", "resource_type", 5),
    NAME("RESOURCE", "resource", 15),
    Column("PATTERN", "pattern_type", 8, rank=RELUCTANTLY),
    NAME("PRINCIPAL", "principal", 15),
    Column("PERMISSION", "permission", 10, tones={"DENY": Tone.BAD}),
    Column("OPERATION", "operation", 9),
    ID("HOST", "host", rank=RELUCTANTLY + 1),
)
USER_COLUMNS = (
    NAME("USER", "user", 15),
    Column("MECHANISM", "mechanism", 13),
    Column("ITERATIONS", "iterations", 10, Shown.IF_ANY, rank=1),
)


def _context_flags(row: Any) -> str | None:
    flags = [name for name, is_set in (("read-only", row.read_only), ("confirm", row.confirm)) if is_set]
    return ",".join(flags) or None


def _defined_in(row: Any) -> str:
    return f"{row.defined_in} (shadowed)" if row.shadowed else str(row.defined_in)


def _milliseconds(row: Any) -> str | None:
    return None if row.duration_ms is None else f"{row.duration_ms:.1f}"


SECURITY_LAYOUTS: dict[str, Layout] = {
    "contexts": Layout(
        ContextRow,
        (
            Column("CURRENT", lambda row: "*" if row.current else "", 7, tones={"*": Tone.GOOD}),
            NAME("CONTEXT", "context", 12),
            NAME("BOOTSTRAP", "bootstrap", 16),
            Column("PROTOCOL", "protocol", 10),
            Column("MECHANISM", "mechanism", shown=Shown.IF_ANY, rank=2),
            Column("FLAGS", _context_flags, shown=Shown.IF_ANY, tones=Tone.CHANGING),
            Column("COLOR", "color", shown=Shown.IF_ANY, rank=1),
            Column("DEFINED-IN", _defined_in, 10, rank=3),
        ),
    ),
    "context-settings": Layout(
        SettingRow,
        (
            ID("SETTING", "setting", 20),
            NAME("VALUE", "value", 20),
            Column("SOURCE", "source", shown=Shown.VERBOSE, fit=Fit.WRAP),
        ),
        name="setting",
    ),
    "context-test": Layout(
        StepRow,
        (
            Column("STEP", "step", 12),
            Column("STATUS", "status", 6, tones=STEP_TONES),
            ID("ADDRESS", "address", shown=Shown.IF_ANY, rank=2),
            Column("MS", _milliseconds, 6, rank=1),
            SENTENCE("DETAIL", "detail", 20),
        ),
    ),
    "users": Layout(UserRow, (*USER_COLUMNS, ERROR)),
    "user-changes": Layout(UserChange, (*USER_COLUMNS, STATUS, ERROR)),
    "acls": Layout(AclRow, ACL_COLUMNS),
    "acl-changes": Layout(AclChange, (*ACL_COLUMNS, STATUS, ERROR)),
}
