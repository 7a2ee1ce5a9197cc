"""When a member sends heartbeats, and when its session or the application's poll is overdue. Kafka's Heartbeat."""

from __future__ import annotations

from random import Random

from kgctl.client.consumer.group.settings import GroupSettings


class Heartbeat:
    def __init__(self, settings: GroupSettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._attempts = 0
        self.in_flight = False
        self.interval_ms = settings.heartbeat_interval_ms
        self.session_timeout_ms = settings.session_timeout_ms
        self.last_sent_ms: int | None = None
        self.polled_ms = 0
        self._due_ms = self._session_ends_ms = self._poll_ends_ms = 0

    def poll(self, now_ms: int) -> None:
        """The application polls."""
        self.polled_ms = now_ms
        self._poll_ends_ms = now_ms + self._settings.max_poll_interval_ms

    def sent(self, now_ms: int) -> None:
        self.last_sent_ms = now_ms
        self.in_flight = True
        self._due_ms = now_ms + self.interval_ms

    def failed(self, now_ms: int) -> None:
        self.in_flight = False
        self._due_ms = now_ms + self._settings.backoff_ms(self._attempts, self._random)
        self._attempts += 1

    def received(self, now_ms: int) -> None:
        self.in_flight = False
        self._attempts = 0
        self.reset_session(now_ms)

    def reset(self, now_ms: int) -> None:
        """The member joined: everything starts over."""
        self.reset_session(now_ms)
        self.poll(now_ms)
        self.in_flight = False
        self._due_ms = now_ms + self.interval_ms

    def reset_session(self, now_ms: int) -> None:
        self._session_ends_ms = now_ms + self.session_timeout_ms

    def hurry(self, now_ms: int) -> None:
        """There is something to say: send the next one now, or as soon as the one in flight is answered."""
        self._due_ms = min(self._due_ms, now_ms)

    @property
    def is_failing(self) -> bool:
        """The last heartbeat failed; the next one waits."""
        return self._attempts > 0

    def is_due(self, now_ms: int) -> bool:
        return now_ms >= self._due_ms

    def wait_ms(self, now_ms: int) -> int:
        return max(0, self._due_ms - now_ms)

    def session_expired(self, now_ms: int) -> bool:
        return now_ms >= self._session_ends_ms

    def poll_expired(self, now_ms: int) -> bool:
        return now_ms >= self._poll_ends_ms

    def wake_at_ms(self, *, is_connected: bool) -> int:
        """When the next of these is due. Without a coordinator only the application can be late."""
        if not is_connected:
            return self._poll_ends_ms
        due_ms = self._session_ends_ms if self.in_flight else self._due_ms
        return min(due_ms, self._session_ends_ms, self._poll_ends_ms)
