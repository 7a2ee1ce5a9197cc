"""Take all file descriptors of this process away for a while."""

from __future__ import annotations

import errno
import gc
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

from broker.storage import Log

SPAN = 64


@contextmanager
def exhausted(log: Log) -> Iterator[None]:
    """No descriptor is free, and all files that the log has open are in use, so that the log cannot close any."""
    in_use = list(log._files._table.values())
    with no_descriptors():
        yield
    in_use.clear()


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Nothing can be opened."""
    gc.collect()  # files of earlier tests must not be closed now
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        # Open files above a lowered limit stay usable.
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, taken[0] + SPAN), hard))
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            assert error.errno == errno.EMFILE  # noqa: PT017
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)
