"""What takes part in the turns of a client: sender, membership, fetcher."""

from __future__ import annotations

from typing import Protocol


class Participant(Protocol):
    """A state machine beside the network. Requests that it sends call it back when they are done."""

    def advance(self, now_ms: int) -> None:
        """Do what is due; send what can be sent."""

    def wake_at_ms(self) -> int | None:
        """When to call `advance` at the latest without any other event. Never a time that has passed: that would spin."""
