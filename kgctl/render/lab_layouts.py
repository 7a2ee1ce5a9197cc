"""The tables of `kgctl lab`."""

from __future__ import annotations

from kgctl.model.lab import LabDesignRow
from kgctl.render.columns import Column, Layout, Shown

LAB_LAYOUTS: dict[str, Layout] = {
    "lab-designs": Layout(
        LabDesignRow,
        (
            Column("DESIGN", "design", 11),
            Column("MESSAGES", "messages", 8),
            Column("NOTIFIED", "notifications", 8),
            Column("ATTEMPTS", "attempts", 8, shown=Shown.WIDE),
            Column("FAILED", "failed_attempts", 6, shown=Shown.WIDE),
            Column("HEARTBEATS", "heartbeats", 10, shown=Shown.WIDE),
            Column("DOUBLE-S", "double_owner_s", 8),
            Column("FENCED-S", "fenced_s", 8),
            Column("UNOWNED-S", "unowned_s", 9),
            Column("STABLE-S", "stable_s", 8),
            Column("SLOWEST-S", "slowest_s", 9),
            Column("UNSTABLE", "unstable", 8, shown=Shown.WIDE),
        ),
        name="design",
    ),
}
