"""All groups over successive looks: a row for each, ready to be shown."""

from __future__ import annotations

from kgctl.model.groups import GroupDescription
from kgctl.model.watched import Look, Verdict, WatchedGroup
from kgctl.watch.rates import WINDOW_S
from kgctl.watch.track import GroupTrack, generation_of, is_gone
from kgctl.watch.verdict import verdict


class GroupsWatch:
    """What the looks so far have shown. It keeps a window of WINDOW_S per group, and forgets groups that are away for longer."""

    def __init__(self) -> None:
        self._tracks: dict[str, GroupTrack] = {}

    def add(self, look: Look) -> list[WatchedGroup]:
        """The rows after one more look, by group id. A group that is gone is left out, one that cannot be asked has its error."""
        rows = []
        for name in sorted(look.groups):
            group = look.groups[name]
            if group.error is not None:
                if not is_gone(group.error):
                    rows.append(failed(group))
                continue
            track = self._tracks.get(name)
            if track is None:
                track = self._tracks[name] = GroupTrack()
            track.add(look.at_s, look.wall_ms, group)
            rows.append(row_of(track, group))
        if len(self._tracks) > len(rows):
            self._forget(look)
        return rows

    def _forget(self, look: Look) -> None:
        """A broker that cannot be asked hides its groups for a while; those that it told to be gone are gone."""
        for name in [name for name, track in self._tracks.items() if self._is_away(track, look.groups.get(name), look)]:
            del self._tracks[name]

    def _is_away(self, track: GroupTrack, group: GroupDescription | None, look: Look) -> bool:
        if group is None and not look.errors:
            return True
        return (group is not None and is_gone(group.error)) or track.at_s < look.at_s - WINDOW_S


def row_of(track: GroupTrack, group: GroupDescription) -> WatchedGroup:
    """The row of a group that has just been looked at."""
    word, reason = verdict(track)
    pace = track.pace
    return WatchedGroup(
        group=group.group,
        type=group.type,
        state=group.state,
        generation=generation_of(group),
        protocol=group.assignment_strategy or None,
        members=len(group.members),
        lag=None if track.lag is None else track.lag + track.left_over_lag,
        rate_in=pace.rate_in,
        rate_out=pace.rate_out,
        rebalanced_s=track.rebalanced_s,
        verdict=word,
        verdict_reason=reason,
    )


def failed(group: GroupDescription) -> WatchedGroup:
    """The row of a group that could not be asked: what is known without its coordinator, and the error."""
    return WatchedGroup(
        group=group.group,
        type=group.type,
        state=group.state,
        generation=None,
        protocol=None,
        members=None,
        lag=None,
        rate_in=None,
        rate_out=None,
        rebalanced_s=None,
        verdict=Verdict.ERROR,
        verdict_reason=group.error.message if group.error else "",
        error=group.error,
    )
