"""Faults of a consumer's fetching."""

from __future__ import annotations

from tests.mutation.faults import Fault

FETCHING = ("tests/kgctl/client/consumer/fetching",)
_PLACE = "client/consumer/fetching"

FETCHING_FAULTS = (
    Fault(
        "fetching: records for a position that the application left are returned",
        f"{_PLACE}/fetches.py",
        "if wanted.offset != (state.position.offset if end is None else end):",
        "if wanted.offset < 0:",
        FETCHING,
        "kgctl",
    ),
    Fault(
        "fetching: the memory has no bound",
        f"{_PLACE}/fetches.py",
        "        return size >= limit\n",
        "        return False\n",
        FETCHING,
        "kgctl",
    ),
    Fault(
        "fetching: records of paused partitions fill the memory",
        f"{_PLACE}/fetches.py",
        "size -= self._buffer.size_of(one)",
        "size -= 0",
        FETCHING,
        "kgctl",
    ),
    Fault(
        "fetching: a follower without the offset resets the position",
        f"{_PLACE}/failures.py",
        "if has_data or state.clear_preferred_replica() is not None:",
        "if has_data:",
        FETCHING,
        "kgctl",
    ),
    Fault(
        "fetching: an offset out of range drops the records before it",
        f"{_PLACE}/failures.py",
        "if has_data or state.clear_preferred_replica() is not None:",
        "if state.clear_preferred_replica() is not None:",
        FETCHING,
        "kgctl",
    ),
    Fault(
        "fetching: a damaged batch is skipped",
        f"{_PLACE}/completed_fetch.py",
        "        if self._error is not None and not out:\n",
        "        if self._error is not None and out is None:\n",
        FETCHING,
        "kgctl",
    ),
    Fault(
        "fetching: a session survives a lost answer",
        f"{_PLACE}/session.py",
        "        self._begin_again(self.session_id)\n\n    def _begin_again",
        "        pass\n\n    def _begin_again",
        FETCHING,
        "kgctl",
    ),
    Fault(
        "fetching: a committed offset overrides a seek",
        f"{_PLACE}/positions.py",
        "            if state is None or not state.is_initializing:\n",
        "            if state is None:\n",
        FETCHING,
        "kgctl",
    ),
)
