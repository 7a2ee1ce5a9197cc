"""Gets the identity of an idempotent producer."""

from __future__ import annotations

from collections.abc import Callable

from kgctl.client.net.errors import KgctlError
from kgctl.client.network.coordinator import Coordinator
from kgctl.client.producer.core.batch import NO_IDENTITY, ProducerIdentity
from kgctl.client.producer.core.coordination import Network, StepQueue
from kgctl.client.producer.core.idempotence import Idempotence
from kgctl.client.producer.core.steps import InitProducerId

_NO_TIMEOUT_MS = 0x7FFFFFFF


class IdempotentProducer(Idempotence):
    """Asks any broker for a producer id when there is something to send."""

    transactional_id: str | None = None
    timeout_ms = _NO_TIMEOUT_MS

    def __init__(self, network: Network, request_timeout_ms: int, backoff_ms: Callable[[int], int]) -> None:
        super().__init__()
        self.backoff_ms = backoff_ms
        self.queue = StepQueue(network, request_timeout_ms, backoff_ms)
        # The cluster does not permit idempotent writes: what waits fails, and the next record asks again.
        self.rejection: KgctlError | None = None

    @property
    def coordinator(self) -> Coordinator | None:
        """Whom to ask for an identity; None for any node."""
        return None

    @property
    def last_error(self) -> KgctlError | None:
        """Why batches that were not sent will not be sent; None while they will."""
        return self.fatal

    @property
    def is_busy(self) -> bool:
        """Whether an answer must come before batches are sent."""
        return self.queue.in_flight is not None

    def advance(self, now_ms: int, *, has_incomplete: bool, has_undrained: bool) -> None:
        """Ask for what is needed."""
        self.resolve()
        if self.fatal is not None:
            return
        self.bump()
        if not self.has_identity and has_undrained and not len(self.queue):
            self.queue.put(InitProducerId(self))
        self.queue.send_first(now_ms)

    def wake_at_ms(self, now_ms: int) -> int | None:
        return self.queue.wake_at_ms(now_ms)

    def initialized(self, identity: ProducerIdentity, *, is_bump: bool) -> None:
        """The broker has answered InitProducerId."""
        self.identity = identity
        for lane in self.lanes.values():
            if lane.pending and lane.identity == NO_IDENTITY:
                lane.restart(identity)

    def fail_fatally(self, error: KgctlError) -> KgctlError:
        """Nothing can be sent any more. Returns what callers see."""
        self.fatal = self.fatal or error
        return self.fatal

    def fail_abortably(self, error: KgctlError) -> KgctlError:
        """What waits fails. Returns what callers see."""
        self.rejection = error
        return error

    def fail_abortably_if_possible(self, error: KgctlError) -> KgctlError:
        return self.fail_fatally(error)

    def take_rejection(self) -> KgctlError | None:
        error, self.rejection = self.rejection, None
        return error
