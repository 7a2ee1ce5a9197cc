"""Why the dashboard changes nothing."""

from __future__ import annotations

from kgctl.tui.dashboard import Dashboard
from kgctl.tui.feed.replay import NO_CHANGES

OPTION = "Read-only: kgctl ui was started with --read-only."
PAGES = "Read-only: kgctl ui --web was started without --allow-actions."


def hindrance(dashboard: Dashboard) -> str:
    """A sentence; empty if changes are allowed."""
    label = dashboard.feed.cluster
    if dashboard.replay is not None:
        return NO_CHANGES
    if label.read_only and not dashboard.read_only_reason:
        return f"Read-only: the context '{label.name}' forbids changes."
    return dashboard.read_only_reason
