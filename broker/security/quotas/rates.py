"""How fast something happened: Kafka's sampled Rate and its TokenBucket, on an explicit clock in milliseconds."""

from __future__ import annotations

from broker.light_named_tuples import NamedTuple

INT_MAX = 2**31 - 1


class Windows(NamedTuple):
    """Over how many samples a rate is measured, and how long each is."""

    samples: int
    each_ms: int

    @property
    def total_ms(self) -> int:
        return self.samples * self.each_ms


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: float) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: float) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """The sum of what the samples hold, by the time that they span; missing samples count as empty ones."""

    __slots__ = ("_current", "_samples", "used_ms")

    def __init__(self, now_ms: float) -> None:
        self._samples = [_Sample(now_ms)]
        self._current = 0
        self.used_ms = now_ms

    def record(self, value: float, now_ms: float, windows: Windows) -> None:
        self.used_ms = now_ms
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= windows.each_ms:
            # One more than the count: the oldest may overlap the measured time.
            self._current = (self._current + 1) % (windows.samples + 1)
            if self._current == len(self._samples):
                self._samples.append(_Sample(now_ms))
            sample = self._samples[self._current]
            sample.reset(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def throttle_ms(self, limit: float, now_ms: float, windows: Windows) -> int:
        """How long nothing may be recorded until the rate is at the limit again; 0 if it is not above."""
        samples, total_ms = self._samples, windows.total_ms
        oldest_ms, total = now_ms, 0.0
        for sample in samples:
            if now_ms - sample.last_ms >= total_ms:
                sample.reset(now_ms)
            total += sample.value
            oldest_ms = min(oldest_ms, sample.start_ms)
        span_ms = now_ms - oldest_ms
        missing = windows.samples - 1 - int(span_ms // windows.each_ms)
        span_ms = max(span_ms + max(missing, 0) * windows.each_ms, 1)
        rate = total * 1000 / span_ms
        if not rate > limit:
            return 0
        return min(int((rate - limit) / limit * span_ms + 0.5), INT_MAX)


class TokenBucket:
    """Tokens that refill at a rate, up to what all windows together allow. The bucket starts full."""

    __slots__ = ("_tokens", "_updated_ms", "used_ms")

    def __init__(self, now_ms: float) -> None:
        self._tokens = float("inf")
        self._updated_ms = self.used_ms = now_ms

    def record(self, value: float, limit: float, now_ms: float, windows: Windows) -> None:
        burst = self._refill(limit, now_ms, windows)
        self._tokens = min(burst, self._tokens - value)

    def throttle_ms(self, limit: float, now_ms: float, windows: Windows) -> int:
        """How long until there is a token again; 0 unless more were taken than there were."""
        self._refill(limit, now_ms, windows)
        return 0 if self._tokens >= 0 else min(int(-self._tokens / limit * 1000 + 0.5), INT_MAX)

    def _refill(self, limit: float, now_ms: float, windows: Windows) -> float:
        burst = windows.total_ms / 1000 * limit
        self._tokens = min(burst, self._tokens + limit * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = self.used_ms = now_ms
        return burst
