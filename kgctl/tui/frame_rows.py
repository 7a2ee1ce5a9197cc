"""The data of a frame, for programs."""

from __future__ import annotations

from kgctl.model.cluster_view import FrameGroup, FramePartition
from kgctl.tui.app import KgctlApp
from kgctl.tui.screens.polled import PolledScreen
from kgctl.watch.cluster import ClusterView
from kgctl.watch.opened import OpenedGroup


def rows_of(app: KgctlApp) -> tuple[FrameGroup | FramePartition, ...]:
    """The partitions of the group that is open, else all groups."""
    answers = [screen.polling.last for screen in reversed(app.screen_stack) if isinstance(screen, PolledScreen)]
    opened = next((answer for answer in answers if isinstance(answer, OpenedGroup)), None)
    if opened is not None:
        return _partitions(opened)
    return _groups(app.cluster) if app.cluster is not None else ()


def _groups(view: ClusterView) -> tuple[FrameGroup, ...]:
    return tuple(
        FrameGroup(
            row.group,
            row.type,
            row.state,
            row.members,
            row.lag,
            row.rate_in,
            row.rate_out,
            row.rebalanced_s,
            None if row.health is None else str(row.health),
            row.health_reason,
            view.lags(row.group),
            row.error,
        )
        for row in view.rows
    )


def _partitions(opened: OpenedGroup) -> tuple[FramePartition, ...]:
    view = opened.view
    if view is None:
        return ()
    summary = view.summary
    if summary.error is not None:
        return (FramePartition(summary.group, error=summary.error),)
    verdict = None if summary.health is None else str(summary.health)
    return tuple(
        FramePartition(
            summary.group,
            row.topic,
            row.partition,
            row.consumer_id,
            row.client_id,
            row.committed,
            row.log_end,
            row.lag,
            row.rate_in,
            row.rate_out,
            row.eta_s,
            summary.state,
            verdict,
            summary.health_reason,
            row.error,
        )
        for row in view.partitions
    )
