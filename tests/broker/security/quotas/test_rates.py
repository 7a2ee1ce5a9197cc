"""Rates and token buckets on an explicit clock: clients get about what they may."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.security.quotas.rates import Rate, TokenBucket, Windows

WINDOWS = Windows(11, 1000)
limits = st.integers(1, 1_000_000)
windows = st.builds(Windows, st.integers(1, 12), st.sampled_from([1000, 3000]))


def used_by_an_obedient_client(rate: Rate, limit: float, size: float, until_ms: float, over: Windows) -> float:
    """What a client uses that always wants more, and waits as long as it is told."""
    now_ms = used = 0.0
    while now_ms < until_ms:
        rate.record(size, now_ms, over)
        used += size
        now_ms += max(rate.throttle_ms(limit, now_ms, over), 20)
    return used


def test_kafkas_example_is_throttled_as_by_kafka() -> None:
    rate = Rate(0)
    rate.record(12_109, 0, WINDOWS)
    # Measured on a Kafka 4.1: ten whole windows have passed, as it were, when the first one begins.
    assert rate.throttle_ms(1000, 0, WINDOWS) == 2109


def test_old_samples_stop_counting() -> None:
    rate = Rate(0)
    rate.record(1e9, 0, WINDOWS)
    rate.record(1, 11_000, WINDOWS)
    assert rate.throttle_ms(1, 11_000, WINDOWS) == 0


@given(limits, st.integers(1, 2_000_000), windows)
def test_an_obedient_client_gets_less_than_twice_the_limit(limit: int, size: int, over: Windows) -> None:
    minute_ms = 60_000
    used = used_by_an_obedient_client(Rate(0), limit, size, minute_ms, over)
    # Kafka's rates forget a burst before its throttle time has made up for it.
    allowed = limit * (minute_ms + 2 * over.total_ms) / 1000
    assert used <= 2 * allowed + size


@given(st.lists(st.tuples(st.floats(0, 3000), st.floats(0, 1000)), max_size=50), limits, windows)
def test_whoever_uses_less_than_the_limit_is_never_throttled(
    steps: list[tuple[float, float]], limit: int, over: Windows
) -> None:
    rate, now_ms = Rate(0), 0.0
    most = limit * max(over.samples - 1, 0) * over.each_ms / 1000 / (len(steps) + 1)
    for pause_ms, share in steps:
        now_ms += pause_ms
        rate.record(most * share / 1000, now_ms, over)
        assert rate.throttle_ms(limit, now_ms, over) == 0


@given(st.lists(st.tuples(st.floats(0, 5000), st.floats(0, 1e6)), max_size=40), limits, windows)
def test_taking_a_record_back_restores_the_rate(steps: list[tuple[float, float]], limit: int, over: Windows) -> None:
    plain, undone, now_ms = Rate(0), Rate(0), 0.0
    for pause_ms, value in steps:
        now_ms += pause_ms
        plain.record(value, now_ms, over)
        undone.record(value, now_ms, over)
    plain.record(0, now_ms, over)
    undone.record(1e6, now_ms, over)
    undone.record(-1e6, now_ms, over)
    assert abs(plain.throttle_ms(limit, now_ms, over) - undone.throttle_ms(limit, now_ms, over)) <= 1


@given(limits, st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 1000)), max_size=60), windows)
def test_a_strict_bucket_never_gives_more_than_its_burst_and_its_rate(
    limit: int, steps: list[tuple[int, int]], over: Windows
) -> None:
    bucket, now_ms, given_out, largest = TokenBucket(0), 0, 0, 0
    for pause_ms, wanted in steps:
        now_ms += pause_ms
        if not bucket.throttle_ms(limit, now_ms, over):
            bucket.record(wanted, limit, now_ms, over)
            given_out += wanted
            largest = max(largest, wanted)
    # The last taker may overdraw it.
    assert given_out <= limit * (over.total_ms + now_ms) / 1000 + largest + 1


@given(st.floats(0.01, 1000), st.integers(1, 10_000))
def test_an_overdrawn_bucket_has_tokens_again_after_the_throttle_time(limit: float, count: int) -> None:
    bucket = TokenBucket(0)
    bucket.record(count, limit, 0, WINDOWS)
    wait_ms = bucket.throttle_ms(limit, 0, WINDOWS)
    assert bucket.throttle_ms(limit, wait_ms + 1, WINDOWS) == 0
