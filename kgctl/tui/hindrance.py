"""Why the dashboard changes nothing."""

from __future__ import annotations

from kgctl.tui.dashboard import Dashboard
from kgctl.tui.feed.replay import NO_CHANGES

OPTION = "Read-only: kgctl ui was started with --read-only."


def hindrance(dashboard: Dashboard) -> str:
    """A sentence; empty if changes are allowed."""
    label = dashboard.feed.cluster
    if dashboard.replay is not None:
        return NO_CHANGES
    if label.read_only:
        return f"Read-only: the context '{label.name}' forbids changes."
    return OPTION if dashboard.read_only else ""
