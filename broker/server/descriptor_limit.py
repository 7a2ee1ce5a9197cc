"""The limit of open files of this process."""

from __future__ import annotations

import logging
import sys

from broker.server.failures import DESCRIPTORS, Refusal

MIN_DESCRIPTORS = 64

logger = logging.getLogger("broker.server")


def raise_descriptor_limit() -> None:
    """Raise the limit of open files, which connections and segments need; refuse to start if it stays too low."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS reports an unlimited hard limit but refuses more than OPEN_MAX.
    wanted = 10240 if sys.platform == "darwin" and hard == resource.RLIM_INFINITY else hard
    if soft != wanted and soft != resource.RLIM_INFINITY:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):
            logger.info("cannot raise the limit of %s open files", soft)
    if soft != resource.RLIM_INFINITY and soft < MIN_DESCRIPTORS:
        raise Refusal(
            DESCRIPTORS, f"too few file descriptors: ulimit -n is {soft}, at least {MIN_DESCRIPTORS} are needed"
        )
