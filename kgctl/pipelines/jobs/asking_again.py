"""Questions about many partitions, some of whose leaders or brokers may be away for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut

_PAUSE_S = 1.0

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class Patience(NamedTuple):
    """How long to ask again, in seconds: where a partition has no leader, and where a broker does not answer.

    A leader moves within seconds, a broker restarts within a minute.
    """

    leader_s: float = 10.0
    broker_s: float = 60.0


PATIENCE = Patience()


def patiently(
    ask: Callable[[Mapping[K, V]], Mapping[K, A | KgctlError]], wanted: Mapping[K, V], patience: Patience
) -> dict[K, A]:
    """The answers for `wanted`.

    Partitions are left out that no longer exist, that the user may not read, or that stay without a leader. Raises KgctlError
    if no partition has a leader, or a broker does not answer. Results are not computed again later, so what is missing here
    would stay missing.
    """
    found: dict[K, A] = {}
    pending = dict(wanted)
    since: dict[tuple[K, bool], float] = {}
    while pending:
        failed = {}
        for key, answer in _answers(ask, pending).items():
            if not isinstance(answer, KgctlError):
                found[key] = answer
            elif _may_pass(answer):
                failed[key] = answer
            elif not isinstance(answer, BrokerError):
                raise answer
        now = time.monotonic()
        # Another kind of outage has its own time: an election follows the silence of a broker.
        since = {one: since.get(one, now) for one in map(_outage, failed.items())}
        late = {
            key: error for key, error in failed.items() if now - since[_outage((key, error))] >= _limit(error, patience)
        }
        silent = [error for error in late.values() if not isinstance(error, BrokerError)]
        if silent or (late and not found):
            raise (silent or [*late.values()])[0]
        pending = {key: pending[key] for key in failed if key not in late}
        if pending:
            time.sleep(_PAUSE_S)
    return found


def _answers(
    ask: Callable[[Mapping[K, V]], Mapping[K, A | KgctlError]], pending: Mapping[K, V]
) -> Mapping[K, A | KgctlError]:
    try:
        return ask(pending)
    except KgctlError as error:
        if not _may_pass(error):
            raise
        return dict.fromkeys(pending, error)


def _outage(failure: tuple[K, KgctlError]) -> tuple[K, bool]:
    key, error = failure
    return key, isinstance(error, BrokerError)


def _limit(error: KgctlError, patience: Patience) -> float:
    return patience.leader_s if isinstance(error, BrokerError) else patience.broker_s


def _may_pass(error: KgctlError) -> bool:
    return error.retriable or isinstance(error, TimedOut)
