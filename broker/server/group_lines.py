"""Log lines about groups: one line for each group event."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.cores.groups.events import GroupEvent

# Clients choose names; a name may be as long as a request.
SHOWN_CHARACTERS = 255

logger = logging.getLogger("broker.groups")


def log_events(events: Iterable[GroupEvent]) -> None:
    if logger.isEnabledFor(logging.INFO):
        for event in events:
            logger.info("%s", line_of(event))


def line_of(event: GroupEvent) -> str:
    """The log line of an event. Names and reasons come from clients; quoting keeps them from starting a new line."""
    parts = [
        f"group {_quoted(event.group_id)} {event.type.value}",
        f"generation {event.generation}",
        f"{event.members} member{'' if event.members == 1 else 's'}",
    ]
    if event.joined_count:
        parts.append(f"{event.joined_count} joined")
    if event.left_count:
        parts.append(f"{event.left_count} left{_why(event)}")
    if event.absent_count:
        parts.append(f"{event.absent_count} absent when the rebalance timeout had passed")
    if event.cause is not None:
        parts.append(f"cause: {event.cause.value}")
    if event.reason:
        parts.append(f"reason: {_quoted(event.reason)}")
    return ", ".join(parts)


def _why(event: GroupEvent) -> str:
    """Why the members left, if that differs from the cause of the event."""
    causes = Counter(cause.value for cause in event.left_causes)
    if not causes or (event.cause is not None and causes.keys() == {event.cause.value}):
        return ""
    return f" ({', '.join(f'{count} {cause}' for cause, count in causes.items())})"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "...")
