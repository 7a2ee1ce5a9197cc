"""Files of a flush are synced together; the flush waits for all of them, and reports an error."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from broker.storage.syncs import Syncs

TOGETHER, DEADLINE_S = 4, 10


@pytest.mark.parametrize("count", [0, 1, 2, TOGETHER, 3 * TOGETHER + 1])
def test_every_file_is_synced_once(count: int) -> None:
    synced: list[int] = []
    Syncs(TOGETHER).run([partial(synced.append, number) for number in range(count)])
    assert sorted(synced) == list(range(count))


def test_files_are_synced_at_the_same_time() -> None:
    all_at_once = threading.Barrier(TOGETHER, timeout=DEADLINE_S)

    def sync() -> None:
        all_at_once.wait()

    Syncs(TOGETHER).run([sync] * TOGETHER)


@pytest.mark.parametrize("failing", range(TOGETHER))
def test_an_error_is_raised_once_all_syncs_have_ended(failing: int) -> None:
    others, ended = threading.Semaphore(0), list[int]()

    def sync(number: int) -> None:
        if number == failing:
            others.release(TOGETHER)
            raise OSError("no space")
        assert others.acquire(timeout=DEADLINE_S)
        ended.append(number)

    with pytest.raises(OSError, match="no space"):
        Syncs(TOGETHER).run([partial(sync, number) for number in range(TOGETHER)])
    assert len(ended) == TOGETHER - 1


def test_files_are_synced_when_the_system_refuses_threads() -> None:
    at_once = Syncs(TOGETHER)
    for _ in range(2):
        synced: list[int] = []
        stack_bytes = threading.stack_size(1 << 46)  # more than the address space has, so no thread starts
        try:
            at_once.run([partial(synced.append, number) for number in range(TOGETHER)])
        finally:
            threading.stack_size(stack_bytes)
        assert sorted(synced) == list(range(TOGETHER))
