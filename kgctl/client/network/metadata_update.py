"""When the metadata is asked for, and what happens with the answer."""

from __future__ import annotations

from collections.abc import Callable

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataResponse
from kgctl.client.net.errors import KgctlError
from kgctl.client.network.metadata import Metadata
from kgctl.client.network.nodes import NEVER
from kgctl.client.network.outgoing import Outgoing
from kgctl.client.network.settings import NetworkSettings


class MetadataUpdate:
    """One request at a time."""

    def __init__(self, metadata: Metadata, settings: NetworkSettings) -> None:
        self._metadata, self._settings = metadata, settings
        self._is_asking = False
        # Since when updates fail (KIP-1102).
        self._began_ms = NEVER
        # Nothing to do before that: no node could be asked.
        self._paused_until_ms = 0

    def is_due(self, now_ms: int) -> bool:
        return not self._is_asking and now_ms >= self._metadata.due_ms() and now_ms >= self._paused_until_ms

    def needs_bootstrap(self, can_hope: bool, now_ms: int) -> bool:
        """Whether to begin again with the bootstrap list: no node can be asked, or none has answered for long."""
        self._began_ms = min(self._began_ms, now_ms)
        if self._settings.metadata_recovery_strategy != "rebootstrap" or not self._metadata.is_bootstrapped:
            self._pause(can_hope, now_ms)
            return False
        late = now_ms - self._began_ms >= self._settings.metadata_recovery_rebootstrap_trigger_ms
        return late or not can_hope

    def _pause(self, can_hope: bool, now_ms: int) -> None:
        if not can_hope:
            self._paused_until_ms = now_ms + self._settings.reconnect_backoff_ms

    def rebootstrap(self, now_ms: int) -> None:
        self._metadata.rebootstrap()
        self._began_ms = now_ms

    def begin(self, now_ms: int, updated: Callable[[], None]) -> Outgoing[MetadataResponse]:
        """The request. `updated` is called after an answer that is of use."""
        self._is_asking = True
        question = self._metadata.ask(now_ms)

        def answered(answer: MetadataResponse | KgctlError, at_ms: int) -> None:
            self._is_asking = False
            if isinstance(answer, KgctlError):
                self._metadata.failed(at_ms, answer)
            elif answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
                self.rebootstrap(at_ms)
            elif not answer.brokers:
                self._metadata.failed(at_ms)
            else:
                self._began_ms = NEVER
                self._metadata.update(question, answer, at_ms)
                updated()

        # Version 0 has no way to ask for no topic; before version 4, asking creates topics.
        lowest = 1 if self._settings.allow_auto_create_topics else 4
        timeout_ms = self._settings.request_timeout_ms
        return Outgoing(question.request, MetadataResponse, answered, timeout_ms, min_version=lowest)

    def wake_at_ms(self) -> int:
        return NEVER if self._is_asking else max(self._metadata.due_ms(), self._paused_until_ms)
