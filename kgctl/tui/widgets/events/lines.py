"""The newest events of one group as lines, where a panel has room left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.content import Content

from kgctl.model.cluster_view import ClusterEvent
from kgctl.tui.widgets.events.table import event_look, moment, what

# A blank line, the heading, and one event.
LEAST = 3


def of_group(events: Iterable[ClusterEvent], group: str) -> list[ClusterEvent]:
    """The newest first."""
    return [event for event in events if event.group == group][::-1]


def event_lines(events: Sequence[ClusterEvent], width: int, room: int) -> list[Content]:
    """At most `room` lines; none if not even one event fits."""
    if not events or room < LEAST:
        return []
    found = [Content(), Content.styled("UTC       EVENTS", "bold $text-muted")]
    for event in events[: room - len(found)]:
        look, time = event_look(event), Content.styled(moment(event.wall_ms), "$text-muted")
        line = Content.assemble(time, "  ", Content.styled(f"{look.glyph} ", look.colour), what(event))
        found.append(line.truncate(width, ellipsis=True))
    return found
