"""Times of a recording as people write them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from kgctl.client.admin.times import moment_ms, span_ms
from kgctl.client.net.errors import BadValue
from kgctl.tui.feed.replay import Recording

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)


def place_at(recording: Recording, text: str) -> int:
    """The place of the last frame until this time: `12:31:07` on the clock of this machine, `+90s` from the start, or ISO 8601.

    Raises BadValue for a text that is no time, and for a time outside the recording.
    """
    first_ms, last_ms = recording.frames[0].wall_ms, recording.frames[-1].wall_ms
    if text.startswith("+"):
        wall_ms = first_ms + span_ms(text[1:])
    elif (clock := _CLOCK.fullmatch(text)) is not None:
        wall_ms = _after(first_ms, *(int(part or 0) for part in clock.groups()))
    else:
        wall_ms = moment_ms(text, last_ms)
    # A time with whole seconds is meant to include them.
    if not first_ms - 999 <= wall_ms <= last_ms + 999:
        spans = " to ".join(datetime.fromtimestamp(ms / 1000).isoformat(" ", "seconds") for ms in (first_ms, last_ms))
        raise BadValue(f"{text!r} is not in the recording, which covers {spans} local time")
    return recording.at(wall_ms + 999 if wall_ms % 1000 == 0 else wall_ms)


def _after(first_ms: int, hour: int, minute: int, second: int) -> int:
    """The first such time of day that is not before the recording, which may go past midnight."""
    begin = datetime.fromtimestamp(first_ms / 1000)
    try:
        found = begin.replace(hour=hour, minute=minute, second=second, microsecond=0)
    except ValueError:
        raise BadValue(f"{hour}:{minute:02}:{second:02} is not a time of day") from None
    if found < begin - timedelta(seconds=1):
        found += timedelta(days=1)
    return round(found.timestamp() * 1000)
